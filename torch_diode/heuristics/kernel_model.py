"""Analytical times of a CPU's candidates: a roofline, and the arithmetic of micro-kernels.

A micro-kernel holds a block of outputs in registers: outputs at the edges are wasted, too few of
them leave the multipliers waiting, too many spill. A library that takes operands as they are first
copies them into its own layout. No timing went into this; constants are round numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.problem_arrays import OneProblem
from torch_diode.model.features.roofline import CALL_US, Bounds, bounds
from torch_diode.types.candidate import (
    ATEN,
    ATEN_F32,
    CONVERTING,
    CPP_GEMM,
    LIBRARIES,
    MKL_PACKED,
    PACKED,
    CppGEMMConfig,
)
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

CPU_DTYPES = ("float32", "bfloat16", "float16")
_FLOAT32_BYTES = 4


@dataclass(frozen=True)
class KernelConstants:
    """Constants of the model."""

    onednn_us: float = 3.0
    """Overhead of oneDNN's primitive over a plain call."""
    copy_bytes_a_us: float = 20e3
    """Rate of one core at copying an operand into another layout,"""
    transposed_copies: float = 4.0
    """and so many times that for one that is transposed on the way."""
    mkl_elsewhere: float = 0.5
    """Rate of MKL on CPUs of other vendors than Intel: it uses half the vector width there."""
    no_matrix_unit: float = 0.15
    """Rate of the C++ template in half precision without AMX."""
    emulated: float = 0.03
    """Rate of a half precision that the CPU has no instructions for."""
    library_block: tuple[int, int] = (6, 64)
    """Outputs of the libraries' micro-kernels."""
    least_sums: int = 8
    """Vectors of sums that keep the multipliers busy."""


def kernel_times_us(
    problem: MMShape, candidates: Candidates, hardware: Hardware, constants: KernelConstants
) -> npt.NDArray[np.float64]:
    """Modelled microseconds of each candidate, in their order."""
    arrays = OneProblem(problem, hardware.threads)
    limits = bounds(arrays, hardware)
    return np.array([_time_us(problem, c, hardware, limits, constants) for c in _pairs(candidates)])


def why_unknown(problem: MMShape, candidates: Candidates) -> str:
    """The dtype or the templates that the model does not know; empty where it knows all."""
    if problem.dtype not in CPU_DTYPES or problem.out_dtype != problem.dtype:
        return f"no rates of {problem.dtype} to {problem.out_dtype} on a CPU"
    names = {candidates.templates[i] for i in np.unique(candidates.template)}
    unknown = sorted(names - {*LIBRARIES, CPP_GEMM})
    return f"no model of {', '.join(unknown)} on a CPU" if unknown else ""


def _pairs(candidates: Candidates) -> list[tuple[str, CppGEMMConfig | None]]:
    return [
        (c.template, c.config if isinstance(c.config, CppGEMMConfig) else None) for c in candidates
    ]


def _time_us(
    problem: MMShape,
    candidate: tuple[str, CppGEMMConfig | None],
    hardware: Hardware,
    limits: Bounds,
    c: KernelConstants,
) -> float:
    template, config = candidate
    threads = max(hardware.threads, 1)
    converts = template in CONVERTING
    is_float32 = problem.dtype == "float32" or converts
    by_mkl = is_float32 and template in (ATEN, ATEN_F32, MKL_PACKED)
    block_m, block_n = (config.block_m, config.block_n) if config else c.library_block
    share = _used_share(problem, block_m, block_n, threads)
    if config is not None:
        share *= _register_use(block_m, block_n, hardware, c)
        share *= 1.0 if is_float32 or "amx_bf16" in hardware.instruction_sets else c.no_matrix_unit
    elif by_mkl and not hardware.name.startswith("intel"):
        share *= c.mkl_elsewhere
    if not is_float32 and not _has_instructions(problem.dtype, hardware):
        share *= c.emulated
    time = CALL_US + limits.compute_us / share + limits.memory_us
    if config is None and not by_mkl:
        time += c.onednn_us
    if converts:
        moved = problem.M * problem.K + problem.K * problem.N + problem.M * problem.N
        time += problem.B * moved * _FLOAT32_BYTES / (c.copy_bytes_a_us * threads)
    if template != CPP_GEMM:
        time += _copy_us(problem, template, threads, c)
    return float(time)


def _has_instructions(dtype: str, hardware: Hardware) -> bool:
    """Whether the CPU multiplies a half precision itself."""
    names = {"bfloat16": ("avx512_bf16", "amx_bf16", "bf16"), "float16": ("avx512_fp16", "asimd")}
    return any(name in hardware.instruction_sets for name in names[dtype])


def _used_share(problem: MMShape, block_m: int, block_n: int, threads: int) -> float:
    """Share of the threads' work that is spent on outputs, and not on edges or on waiting."""
    tiles_m, tiles_n = ceil(problem.M / block_m), ceil(problem.N / block_n)
    edges = problem.M * problem.N / (tiles_m * block_m * tiles_n * block_n)
    tiles = problem.B * tiles_m * tiles_n
    return edges * tiles / (ceil(tiles / threads) * threads)


def _register_use(block_m: int, block_n: int, hardware: Hardware, c: KernelConstants) -> float:
    """Share of the peak that a block of sums in registers reaches."""
    wide = "avx512f" in hardware.instruction_sets
    lanes, registers = (16, 32) if wide else (8, 16)
    columns = max(ceil(block_n / lanes), 1)
    sums = block_m * columns
    busy = min(sums / c.least_sums, 1.0)
    fits = min(registers / (sums + columns + 1), 1.0)
    loads = min(2.0 * sums / (block_m + columns), 1.0)
    return busy * fits * loads * min(block_n / (columns * lanes), 1.0)


def _copy_us(problem: MMShape, template: str, threads: int, c: KernelConstants) -> float:
    """Time to bring operands into a library's layout: of A if it is transposed, of B if it is not
    packed beforehand and there are rows enough to be worth it."""
    item = _FLOAT32_BYTES if problem.dtype == "float32" else _FLOAT32_BYTES // 2
    copied = 0.0
    if problem.transpose_a:
        copied += c.transposed_copies * problem.M * problem.K
    if template not in PACKED and c.library_block[0] <= problem.M:
        copied += problem.K * problem.N
    return problem.B * copied * item / (c.copy_bytes_a_us * threads)
