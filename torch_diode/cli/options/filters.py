"""Options that select timings, hardware or problems, shared as annotated types."""

from __future__ import annotations

from typing import Annotated

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.cli.options.parameters import option
from torch_diode.hardware import known_names
from torch_diode.types.problem import LAYOUTS, OPS

_CHIPS = known_names()

Hardware = Annotated[str | None, option("Only this hardware.", values=_CHIPS)]
Operations = Annotated[list[str] | None, option("Only these operations.", values=OPS)]
HardwareName = Annotated[str | None, option("Only this hardware's timings.", values=_CHIPS)]
OpName = Annotated[list[str] | None, option("Only this operation; may be given again.", values=OPS)]
Score = Annotated[
    str,
    option(
        "Problems to score: auto, held-out (of training) or all.",
        values=["auto", "held-out", "all"],
    ),
]
Chip = Annotated[
    str | None,
    option("Chip, which need not be here; this machine's by default.", values=_CHIPS),
]
Threads = Annotated[int, option("Threads of a CPU; as many as torch uses here by default.", min=0)]
Op = Annotated[str, option("mm, addmm, bmm or baddbmm.", values=OPS)]
Dtype = Annotated[str, option("bfloat16, float16 or float32.", values=TRITON_DTYPES)]
Layout = Annotated[
    str, option("nn, nt, tn or tt: t for an operand that lies transposed.", values=LAYOUTS)
]
