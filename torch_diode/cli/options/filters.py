"""Options that select timings, hardware or problems, shared as annotated types."""

from __future__ import annotations

from typing import Annotated

import typer

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.cli.options.parameters import complete
from torch_diode.hardware import known_names
from torch_diode.types.problem import LAYOUTS, OPS

_complete_hardware = complete(known_names())
_complete_operation = complete(OPS)

Hardware = Annotated[
    str | None, typer.Option(help="Only this hardware.", autocompletion=_complete_hardware)
]
Operations = Annotated[
    list[str] | None,
    typer.Option(help="Only these operations.", autocompletion=_complete_operation),
]
HardwareName = Annotated[
    str | None,
    typer.Option(help="Only this hardware's timings.", autocompletion=_complete_hardware),
]
OpName = Annotated[
    list[str] | None,
    typer.Option(
        help="Only this operation; may be given again.", autocompletion=_complete_operation
    ),
]
Score = Annotated[
    str,
    typer.Option(
        help="Problems to score: auto, held-out (of training) or all.",
        autocompletion=complete(["auto", "held-out", "all"]),
    ),
]
Chip = Annotated[
    str | None,
    typer.Option(
        help="Chip, which need not be here; this machine's by default.",
        autocompletion=_complete_hardware,
    ),
]
Threads = Annotated[
    int, typer.Option(help="Threads of a CPU; as many as torch uses here by default.", min=0)
]
Op = Annotated[
    str, typer.Option(help="mm, addmm, bmm or baddbmm.", autocompletion=_complete_operation)
]
Dtype = Annotated[
    str, typer.Option(help="bfloat16, float16 or float32.", autocompletion=complete(TRITON_DTYPES))
]
Layout = Annotated[
    str,
    typer.Option(
        help="nn, nt, tn or tt: t for an operand that lies transposed.",
        autocompletion=complete(LAYOUTS),
    ),
]
