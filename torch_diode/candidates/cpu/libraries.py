"""The libraries that can run a matmul on a CPU: ATen's own choice, and oneDNN called directly.

ATen sends float32 to MKL on x86 whatever the chip is; oneDNN, which every build of torch carries,
takes the same operands as they lie in memory, in any layout, and adds a bias vector on the way.
"""

from __future__ import annotations

from torch_diode.types.candidate import ATEN, ONEDNN
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, MMShape

# Instruction sets without which oneDNN has no kernel for a dtype (seen: it raises).
_NEEDS_ONE_OF = {
    "float32": (),
    "bfloat16": ("avx512f", "bf16"),
    "float16": ("avx512_fp16",),
}


def cpu_templates(problem: MMShape, hardware: Hardware) -> tuple[str, ...]:
    """The libraries to choose from, ATen first."""
    return (ATEN, ONEDNN) if onednn_runs(problem, hardware) else (ATEN,)


def onednn_runs(problem: MMShape, hardware: Hardware) -> bool:
    """Whether oneDNN's linear can run a problem on operands as they are.

    It multiplies two matrices, so a batch would need a call per matrix; it adds a vector to every
    row, so a full matrix of biases would need another kernel.
    """
    if problem.op in BATCHED or problem.bias == "matrix" or problem.out_dtype != problem.dtype:
        return False
    needed = _NEEDS_ONE_OF.get(problem.dtype)
    if needed is None:
        return False
    return not needed or any(name in hardware.instruction_sets for name in needed)
