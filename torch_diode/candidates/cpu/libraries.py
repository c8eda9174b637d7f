"""The libraries that can run a matmul on a CPU: ATen's own choice, oneDNN and MKL.

ATen sends float32 to MKL on x86 whatever the chip is; oneDNN, which every build of torch carries,
takes the same operands as they lie in memory, in any layout, and adds a bias vector on the way.
Both take a constant weight, as frozen graphs have, in a layout of their own, packed once.
"""

from __future__ import annotations

from torch_diode.types.candidate import ATEN, MKL_PACKED, ONEDNN, ONEDNN_PACKED
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, MMShape

PLAIN = (ATEN, ONEDNN)
"""Libraries that take any operands: all that a graph without constant weights can use."""

# Instruction sets without which oneDNN has no kernel for a dtype (seen: it raises).
_NEEDS_ONE_OF = {
    "float32": (),
    "bfloat16": ("avx512f", "bf16"),
    "float16": ("avx512_fp16",),
}
_MKL_ARCHS = ("x86_64", "AMD64", "amd64")


def libraries(problem: MMShape, hardware: Hardware) -> tuple[str, ...]:
    """The libraries to choose from, ATen first; the packed ones need a constant B."""
    runs = {
        ONEDNN: onednn_runs(problem, hardware),
        ONEDNN_PACKED: packed_runs(problem, hardware),
        MKL_PACKED: packed_runs(problem, hardware)
        and problem.dtype == "float32"
        and hardware.arch in _MKL_ARCHS,
    }
    return (ATEN, *(name for name, possible in runs.items() if possible))


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


def packed_runs(problem: MMShape, hardware: Hardware) -> bool:
    """Whether a library can run a problem with B packed.

    A transposed A would be copied first: no graph should pay for that to spare a layout of B.
    """
    return onednn_runs(problem, hardware) and not problem.transpose_a
