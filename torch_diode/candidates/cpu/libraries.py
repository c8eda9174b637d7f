"""The libraries that can run a matmul on a CPU: ATen's own choice, oneDNN and MKL.

ATen sends float32 to MKL on x86 whatever the chip is; oneDNN, which every build of torch carries,
takes the same operands as they lie in memory, in any layout, and adds a bias vector on the way. It
multiplies two matrices: a batch is a call per matrix, which pays where they are large.
A half precision for which the CPU has no instructions is slow in ATen, up to a hundred times as
slow as float32: such operands may be converted to float32, multiplied and converted back.
Both take a constant weight, as frozen graphs have, in a layout of their own, packed once.
"""

from __future__ import annotations

from torch_diode.types.candidate import (
    ATEN,
    ATEN_F32,
    CONVERTING,
    MKL_PACKED,
    ONEDNN,
    ONEDNN_F32,
    ONEDNN_PACKED,
)
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, MMShape

PLAIN = (ATEN, ONEDNN, *CONVERTING)
"""Libraries that take any operands: all that a graph without constant weights can use."""

# Instruction sets without which oneDNN has no kernel for a dtype (seen: it raises).
_NEEDS_ONE_OF = {
    "float32": (),
    "bfloat16": ("avx512f", "bf16"),
    "float16": ("avx512_fp16",),
}
_NATIVE = {"bfloat16": ("avx512_bf16", "amx_bf16"), "float16": ("avx512_fp16",)}
"""Instruction sets that multiply a half precision; only x86 is known well enough."""
_MOST_SLICES = 32
_LEAST_SLICE = 1 << 22
"""Multiplications per matrix of a batch from which a call per matrix can pay."""
_X86 = ("x86_64", "AMD64", "amd64")


def libraries(problem: MMShape, hardware: Hardware) -> tuple[str, ...]:
    """The libraries to choose from, ATen first; the packed ones need a constant B."""
    packed = packed_runs(problem, hardware)
    runs = {
        ONEDNN: onednn_runs(problem, hardware) or _slices_pay(problem),
        ATEN_F32: _converts(problem, hardware) and not _onednn_multiplies(problem),
        ONEDNN_F32: _converts(problem, hardware)
        and (_onednn_multiplies(problem) or _is_worth_slicing(problem)),
        ONEDNN_PACKED: packed,
        MKL_PACKED: packed and problem.dtype == "float32" and hardware.arch in _X86,
    }
    return (ATEN, *(name for name, possible in runs.items() if possible))


def onednn_runs(problem: MMShape, hardware: Hardware) -> bool:
    """Whether oneDNN's linear can run a problem on operands as they are.

    It multiplies two matrices, so a batch would need a call per matrix; it adds a vector to every
    row, so a full matrix of biases would need another kernel.
    """
    if not _onednn_multiplies(problem):
        return False
    needed = _NEEDS_ONE_OF.get(problem.dtype)
    if needed is None:
        return False
    return not needed or any(name in hardware.instruction_sets for name in needed)


def _onednn_multiplies(problem: MMShape) -> bool:
    """Whether it is a product of two matrices, with a bias that oneDNN adds."""
    plain = problem.out_dtype == problem.dtype
    return plain and problem.op not in BATCHED and problem.bias != "matrix"


def _slices_pay(problem: MMShape) -> bool:
    """Whether a call of oneDNN per matrix of a batch is worth a try: only for float32, since for
    other dtypes ATen calls oneDNN itself."""
    return problem.dtype == "float32" and _is_worth_slicing(problem)


def _is_worth_slicing(problem: MMShape) -> bool:
    large = problem.M * problem.N * problem.K >= _LEAST_SLICE
    few = 1 < problem.B <= _MOST_SLICES
    return problem.op in BATCHED and few and large and problem.out_dtype == problem.dtype


def _converts(problem: MMShape, hardware: Hardware) -> bool:
    """Whether the CPU lacks instructions for a half precision."""
    native = _NATIVE.get(problem.dtype, ())
    lacks = bool(native) and not any(name in hardware.instruction_sets for name in native)
    return lacks and hardware.arch in _X86 and problem.out_dtype == problem.dtype


def packed_runs(problem: MMShape, hardware: Hardware) -> bool:
    """Whether a library can run a problem with B packed.

    A transposed A would be copied first: no graph should pay for that to spare a layout of B.
    """
    return onednn_runs(problem, hardware) and not problem.transpose_a
