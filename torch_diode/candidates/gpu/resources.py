"""Resources a config needs: shared memory per block and registers per thread.

Measured if a compiled kernel is on file (`compiled_resources`), otherwise by rule. The rule for
shared memory is Triton's: the main loop keeps a block of A and B in flight per stage if the matrix
unit reads shared memory (wgmma on Hopper, tcgen05 on Blackwell), one less if operands pass through
registers; the epilogue reuses the memory to convert the layout of the output. It is exact if loads
are asynchronous and the main loop needs more than the epilogue, and an upper bound otherwise: a
config excluded by mistake costs little, one that does not fit fails a compile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.gpu.compiled_resources import config_keys, kernel_name, measured_kernels
from torch_diode.candidates.gpu.eligibility import arch_number
from torch_diode.types.candidate import TMA_TEMPLATES
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

SAFE_SHARED_MEMORY = 48 * 1024
"""Available on any GPU: the limit for chips whose own is not known."""

_BARRIER_BYTES = 16
_TMA_ALIGNMENT = 1024
_MOST_UNROLLED = 65_536
"""Multiply-adds of a block per warp."""
_MOST_IN_ONE_STEP = {"mm": 32_768, "bmm": _MOST_UNROLLED, "addmm": 16_384, "baddbmm": 16_384}
"""The same if K fits a block, from timings; bmm has no lower limit."""
_MOST_HELD_IN_ONE_STEP = 1 << 21
"""The same, times BLOCK_K."""
_MATRIX_UNIT_ROWS = 64
_MATRIX_UNIT_WARPS = 4
_MOST_REGISTERS = 255
_ALLOCATION_STEP = 8
_FIXED_REGISTERS = 28
_FRAGMENT_REGISTERS = 12
_LOAD_BYTES = 16
_ADDRESS_REGISTERS = 1.6
_RESERVED_SHARED = 1024
_MOST_BLOCKS_PER_UNIT = 16


@dataclass(frozen=True, eq=False)
class Resources:
    """Arrays by candidate; zero for candidates without a Triton config."""

    shared_bytes: npt.NDArray[np.int64]
    registers: npt.NDArray[np.int32]
    compiles: npt.NDArray[np.bool_]
    """False only if the compiler is known to reject the config."""


def resources_of(candidates: Candidates, problem: MMShape, hardware: Hardware) -> Resources:
    """Resources of each candidate on this hardware, for the problem's dtypes and layout."""
    shared = _shared_by_rule(candidates, problem, hardware)
    registers = _registers_by_rule(candidates, problem, hardware)
    compiles = np.ones(len(candidates), bool)
    on_file = measured_kernels(hardware.arch)
    names = {kernel_name(template, problem): template for template in candidates.templates}
    tables = [(on_file[name], template) for name, template in names.items() if name in on_file]
    keys = config_keys(candidates) if tables else np.zeros(0, np.int64)
    for table, template in tables:
        known, rows = table.find(keys)
        known &= candidates.is_template(template)
        compiles[known] = table.shared_bytes[rows][known] >= 0
        known &= compiles
        shared = np.where(known, table.shared_bytes[rows], shared)
        registers = np.where(known, table.registers[rows], registers)
    return Resources(shared, registers, compiles)


def fits(resources: Resources, candidates: Candidates, hardware: Hardware) -> npt.NDArray[np.bool_]:
    """Mask of the candidates that can be launched on the chip."""
    limit = hardware.shared_memory_per_block or SAFE_SHARED_MEMORY
    mask = resources.compiles & (resources.shared_bytes <= limit)
    threads = candidates.fields["num_warps"] * (hardware.warp_size or 32)
    mask &= threads <= 1024
    if hardware.registers_per_unit:
        mask &= resources.registers * threads <= hardware.registers_per_unit
    return mask


def blocks_per_unit(
    resources: Resources, candidates: Candidates, hardware: Hardware
) -> npt.NDArray[np.int64]:
    """Occupancy: blocks that a unit (SM) can hold at a time, from 1 to 16."""
    threads = np.maximum(candidates.fields["num_warps"], 1) * (hardware.warp_size or 32)
    blocks = np.full(len(candidates), _MOST_BLOCKS_PER_UNIT, dtype=np.int64)
    for limit, used in (
        (hardware.shared_memory_per_unit, resources.shared_bytes + _RESERVED_SHARED),
        (hardware.registers_per_unit, resources.registers * threads),
        (hardware.threads_per_unit, threads),
    ):
        if limit:
            blocks = np.minimum(blocks, limit // np.maximum(used, 1))
    return np.maximum(blocks, 1)


def worth_compiling(candidates: Candidates, problem: MMShape) -> npt.NDArray[np.bool_]:
    """Mask without full float32 configs so large that they compile for three seconds to three
    minutes: without a matrix unit, a block is unrolled into single multiply-adds. On the H200 none
    of them was the fastest on any of 1,596 problems."""
    if problem.precision != "float32":
        return np.ones(len(candidates), bool)
    return np.asarray(_multiply_adds(candidates) <= _MOST_UNROLLED * candidates.fields["num_warps"])


def avoids_spills_in_one_step(candidates: Candidates, problem: MMShape) -> npt.NDArray[np.bool_]:
    """Mask without full float32 configs that run out of registers if K fits a block: without a loop
    to pipeline, the compiler loads operands into registers, and spills. Hardly any was near the
    best on the H200 ("Spills" in docs/experiments.md)."""
    if problem.precision != "float32":
        return np.ones(len(candidates), bool)
    fields, block = candidates.fields, _multiply_adds(candidates)
    unrolled = block <= _MOST_IN_ONE_STEP[problem.op] * fields["num_warps"]
    held = block * fields["block_k"] < _MOST_HELD_IN_ONE_STEP * fields["num_warps"]
    return np.asarray(unrolled & held)


def _multiply_adds(candidates: Candidates) -> npt.NDArray[np.int64]:
    fields = candidates.fields
    return fields["block_m"].astype(np.int64) * fields["block_n"] * fields["block_k"]


def reads_a_without_transposing(
    candidates: Candidates, problem: MMShape, hardware: Hardware
) -> npt.NDArray[np.bool_]:
    """Mask without configs that transpose A in registers: on Hopper, in TF32, the matrix unit reads
    both operands along K. Half of them took over four times as long as the best ("A transposed A in
    TF32" in docs/experiments.md)."""
    if not (problem.tf32 and problem.transpose_a and arch_number(hardware.arch) // 10 == 9):
        return np.ones(len(candidates), bool)
    return ~uses_matrix_unit_on_shared(candidates, problem, hardware)


def uses_matrix_unit_on_shared(
    candidates: Candidates, problem: MMShape, hardware: Hardware
) -> npt.NDArray[np.bool_]:
    """Mask of configs whose matrix unit reads operands from shared memory: on Hopper and datacenter
    Blackwell, with at least 64 rows per block and four warps, and not in full float32."""
    major = arch_number(hardware.arch) // 10
    if major not in (9, 10) or problem.precision == "float32":
        return np.zeros(len(candidates), bool)
    wide = candidates.fields["block_m"] >= _MATRIX_UNIT_ROWS
    return np.asarray(wide & (candidates.fields["num_warps"] >= _MATRIX_UNIT_WARPS))


def _shared_by_rule(
    candidates: Candidates, problem: MMShape, hardware: Hardware
) -> npt.NDArray[np.int64]:
    f = candidates.fields
    item = DTYPE_BYTES[problem.dtype]
    load = (f["block_m"] + f["block_n"]) * f["block_k"].astype(np.int64) * item
    if arch_number(hardware.arch) >= 80:
        direct = uses_matrix_unit_on_shared(candidates, problem, hardware)
        buffers = np.maximum(np.where(direct, f["num_stages"], f["num_stages"] - 1), 1)
    else:
        buffers = np.maximum(f["num_stages"], 1)
    epilogue = f["block_m"] * f["block_n"] * DTYPE_BYTES[problem.out_dtype]
    barriers = np.where(_has_barriers(candidates, hardware), _BARRIER_BYTES * buffers, 0)
    needs = np.maximum(buffers * load, epilogue) + barriers
    return np.asarray(needs + _tma_extra(candidates, problem), dtype=np.int64)


def _tma_extra(candidates: Candidates, problem: MMShape) -> npt.NDArray[np.int64]:
    """Additional bytes with TMA, observed in compiled kernels: alignment to 1 KiB, and in full
    float32 a second copy of a transposed B."""
    f = candidates.fields
    copied = problem.precision == "float32" and problem.transpose_b
    copy = f["block_n"].astype(np.int64) * f["block_k"] * DTYPE_BYTES[problem.dtype] * copied
    return np.where(_uses_tma(candidates), _TMA_ALIGNMENT + _BARRIER_BYTES + copy, 0)


def _has_barriers(candidates: Candidates, hardware: Hardware) -> npt.NDArray[np.bool_]:
    if arch_number(hardware.arch) // 10 == 10:
        return np.asarray(candidates.fields["block_m"] > 0)
    return _uses_tma(candidates)


def _uses_tma(candidates: Candidates) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(candidates), bool)
    for template in TMA_TEMPLATES.intersection(candidates.templates):
        mask |= candidates.is_template(template)
    return mask


def _registers_by_rule(
    candidates: Candidates, problem: MMShape, hardware: Hardware
) -> npt.NDArray[np.int32]:
    """Estimate: the accumulator; registers per address a thread loads 16 bytes from, except with
    TMA; operand fragments if they pass through registers; and a constant.

    Within a fifth of compiled kernels on Hopper for most configs. It is used for the occupancy and
    excludes no config, since the compiler never uses more than the block's threads can have.
    """
    f = candidates.fields
    threads = np.maximum(f["num_warps"], 1) * (hardware.warp_size or 32)
    needs = _FIXED_REGISTERS + f["block_m"] * f["block_n"] / threads
    loads = (f["block_m"] + f["block_n"]) * f["block_k"] * DTYPE_BYTES[problem.dtype]
    needs += np.where(
        _uses_tma(candidates), 0.0, _ADDRESS_REGISTERS * loads / (_LOAD_BYTES * threads)
    )
    direct = uses_matrix_unit_on_shared(candidates, problem, hardware)
    needs += np.where(direct, 0, _FRAGMENT_REGISTERS)
    most = np.minimum(_MOST_REGISTERS, (hardware.registers_per_unit or 65536) // threads)
    steps = np.ceil(np.minimum(needs, most) / _ALLOCATION_STEP) * _ALLOCATION_STEP
    return np.where(f["block_m"] > 0, np.minimum(steps, most), 0).astype(np.int32)
