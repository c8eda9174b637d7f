"""Analytical times of a CPU's kernels: a roofline, and the arithmetic of micro-kernels.

A micro-kernel holds a block of outputs in registers: outputs at the edges are wasted, too few of
them leave the multipliers waiting, too many spill. A library that takes operands as they are first
copies them into its own layout. No timing went into this; constants are round numbers. They are an
input of the models for CPUs, and all of the analytical heuristic. Like features, they are computed
for arrays of problems or for one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.model.features.names import PRECISIONS
from torch_diode.model.features.problem_arrays import select
from torch_diode.model.features.roofline import CALL_US, bounds, core_rates
from torch_diode.types.candidate import ATEN, ATEN_F32, CONVERTING, MKL_PACKED, PACKED

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats, Problems, Values
    from torch_diode.types.hardware import Hardware

_FLOAT32 = PRECISIONS.index("float32")
_FLOAT32_BYTES = 4
_MKL = (ATEN, ATEN_F32, MKL_PACKED)
"""Templates that are MKL's in float32; in other dtypes they are oneDNN's."""
_NEEDS = {"bfloat16": {"avx512_bf16", "amx_bf16", "bf16"}, "float16": {"avx512_fp16", "asimd"}}


ONEDNN_US = 3.0
"""Overhead of oneDNN's primitive over a plain call."""
COPY_BYTES_A_US = 20e3
"""Rate of one core at copying an operand into another layout,"""
TRANSPOSED_COPIES = 4.0
"""and so many times that for one that is transposed on the way."""
MKL_ELSEWHERE = 0.5
"""Rate of MKL on CPUs of other vendors than Intel: it uses half the vector width there."""
NO_MATRIX_UNIT = 0.15
"""Rate of the C++ template in half precision without AMX."""
EMULATED = 0.03
"""Rate of a half precision that the CPU has no instructions for."""
LIBRARY_BLOCK = (6, 64)
"""Outputs of the libraries' micro-kernels."""
LEAST_SUMS = 8
"""Vectors of sums that keep the multipliers busy."""


def kernel_us(
    p: Problems, hardware: Hardware, template: str, block: tuple[int, int] | None = None
) -> Values:
    """Modelled microseconds of a library, or of the C++ template with a register blocking."""
    limits, threads = bounds(p, hardware), p.xp.maximum(p.threads, 1.0)
    converts = template in CONVERTING
    is_float32 = 1.0 if converts else 1.0 * (p.precision == _FLOAT32)
    by_mkl = is_float32 if template in _MKL else 0.0
    share = _used_share(p, block or LIBRARY_BLOCK)
    if block is not None:
        share = share * _register_use(block, hardware)
        if "amx_bf16" not in hardware.instruction_sets:
            share = share * select(is_float32, 1.0, NO_MATRIX_UNIT)
    elif not hardware.name.startswith("intel"):
        share = share * select(by_mkl, MKL_ELSEWHERE, 1.0)
    share = share * select(
        is_float32, 1.0, p.xp.take(_native(hardware.instruction_sets), p.precision)
    )
    compute = limits.compute_us
    if converts:
        compute = compute * limits.rate / float(core_rates(hardware).rates[_FLOAT32])
    time = CALL_US + compute / share + limits.memory_us
    if block is not None:
        return time
    copied = _copied(p, template) * select(is_float32, _FLOAT32_BYTES, p.item)
    if converts:
        copied = copied + p.B * (p.M * p.K + p.K * p.N + p.M * p.N) * _FLOAT32_BYTES
    return time + ONEDNN_US * (1 - by_mkl) + copied / (COPY_BYTES_A_US * threads)


def _used_share(p: Problems, block: tuple[int, int]) -> Values:
    """Share of the threads' work that is spent on outputs, and not on edges or on waiting."""
    share = p.known.get(block)
    if share is None:
        threads = p.xp.maximum(p.threads, 1.0)
        tiles_m, tiles_n = p.xp.ceil(p.M / block[0]), p.xp.ceil(p.N / block[1])
        edges = p.M * p.N / (tiles_m * block[0] * tiles_n * block[1])
        tiles = p.B * tiles_m * tiles_n
        share = p.known[block] = edges * tiles / (p.xp.ceil(tiles / threads) * threads)
    return share


def _register_use(block: tuple[int, int], hardware: Hardware) -> float:
    """Share of the peak that a block of sums in registers reaches."""
    block_m, block_n = block
    lanes, registers = (16, 32) if "avx512f" in hardware.instruction_sets else (8, 16)
    columns = -(-block_n // lanes)
    sums = block_m * columns
    busy = min(sums / LEAST_SUMS, 1.0)
    fits = min(registers / (sums + columns + 1), 1.0)
    loads = min(2.0 * sums / (block_m + columns), 1.0)
    return busy * fits * loads * block_n / (columns * lanes)


@lru_cache(maxsize=16)
def _native(instruction_sets: tuple[str, ...]) -> Floats:
    """Rate of each precision over that of its instructions, which the CPU may lack."""
    sets = set(instruction_sets)
    lacks = [name in _NEEDS and not _NEEDS[name] & sets for name in (*PRECISIONS, "")]
    return np.where(lacks, np.float32(EMULATED), np.float32(1))


def _copied(p: Problems, template: str) -> Values:
    """Elements brought into a library's layout: of A if it is transposed, of B if it is not packed
    beforehand and there are rows enough to be worth it."""
    copied = p.transpose_a * (TRANSPOSED_COPIES * p.M * p.K)
    if template not in PACKED:
        copied = copied + (LIBRARY_BLOCK[0] <= p.M) * (p.K * p.N)
    return p.B * copied
