"""Options that select timings, hardware or problems."""

from __future__ import annotations

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.cli.options.parameters import option
from torch_diode.hardware import known_names
from torch_diode.types.problem import LAYOUTS, OPS

_CHIPS = known_names()
_SCORED = ["auto", "held-out", "all"]

HARDWARE = option("Only this hardware.", values=_CHIPS)
OPERATIONS = option("Only these operations.", values=OPS)
HARDWARE_NAME = option("Only this hardware's timings.", values=_CHIPS)
OP_NAME = option("Only this operation; may be given again.", values=OPS)
SCORE = option(
    "Problems to score: auto, held-out (of training) or all.", default="auto", values=_SCORED
)
CHIP = option("Chip, which need not be here; this machine's by default.", values=_CHIPS)
THREADS = option("Threads of a CPU; as many as torch uses here by default.", default=0, min=0)
OP = option("mm, addmm, bmm or baddbmm.", default="mm", values=OPS)
DTYPE = option("bfloat16, float16 or float32.", default="bfloat16", values=TRITON_DTYPES)
LAYOUT = option(
    "nn, nt, tn or tt: t for an operand that lies transposed.", default="nn", values=LAYOUTS
)
