"""What a config needs of the chip: shared memory a block, registers a thread.

Measured where a compiled kernel was looked at (`measured`), otherwise by rule. The rule for shared
memory is Triton's: the main loop keeps so many blocks of A and B in flight, one for each stage
where the matrix unit reads shared memory itself (wgmma on Hopper, tcgen05 on Blackwell), one less
where operands pass through registers; the epilogue uses the same memory again, to hand the output
over from one layout to another. It is exact where loads can be made asynchronous and the main loop
needs more than the epilogue, and errs on the large side elsewhere: a config that is wrongly left
out costs little, one that does not fit fails a compile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.gpu.compiled_resources import config_keys, kernel_name, measured_kernels
from torch_diode.candidates.gpu.eligibility import arch_number
from torch_diode.candidates.gpu.exhaustive import TMA_TEMPLATES
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

SAFE_SHARED_MEMORY = 48 * 1024
"""What a block may always have, on any GPU: the limit where a chip's own is not known."""

_BARRIER_BYTES = 16
_TMA_ALIGNMENT = 1024
_MOST_UNROLLED = 65_536
"""Multiply-adds of a block for each warp."""
_MOST_IN_ONE_STEP = {"mm": 32_768, "bmm": _MOST_UNROLLED, "addmm": 16_384, "baddbmm": 16_384}
"""The same where K fits a block, as timings show it; bmm has no limit of its own."""
_MOST_HELD_IN_ONE_STEP = 1 << 21
"""The same, times the length along K."""
_MATRIX_UNIT_ROWS = 64
_MATRIX_UNIT_WARPS = 4
_MOST_REGISTERS = 255
_ALLOCATION_STEP = 8
_FIXED_REGISTERS = 28
_FRAGMENT_REGISTERS = 12
_LOAD_BYTES = 16
_ADDRESS_REGISTERS = 1.6


@dataclass(frozen=True, eq=False)
class Resources:
    """By candidate; all zero for one that is no Triton config."""

    shared_bytes: npt.NDArray[np.int64]
    registers: npt.NDArray[np.int32]
    compiles: npt.NDArray[np.bool_]
    """False only where the compiler was seen to refuse the config."""
    measured: npt.NDArray[np.bool_]


def resources_of(candidates: Candidates, problem: MMShape, hardware: Hardware) -> Resources:
    """What each candidate needs on this hardware, with this problem's dtypes and layout."""
    shared = _shared_by_rule(candidates, problem, hardware)
    registers = _registers_by_rule(candidates, problem, hardware)
    compiles = np.ones(len(candidates), bool)
    measured = np.zeros(len(candidates), bool)
    known = measured_kernels(hardware.arch)
    names = {kernel_name(template, problem): template for template in candidates.templates}
    tables = [(known[name], template) for name, template in names.items() if name in known]
    keys = config_keys(candidates) if tables else np.zeros(0, np.int64)
    for table, template in tables:
        found, rows = table.find(keys)
        found &= candidates.is_template(template)
        compiles[found] = table.shared_bytes[rows][found] >= 0
        found &= compiles
        shared = np.where(found, table.shared_bytes[rows], shared)
        registers = np.where(found, table.registers[rows], registers)
        measured |= found
    return Resources(shared, registers, compiles, measured)


def fits(resources: Resources, candidates: Candidates, hardware: Hardware) -> npt.NDArray[np.bool_]:
    """Which candidates can be launched on the chip."""
    limit = hardware.shared_memory_per_block or SAFE_SHARED_MEMORY
    mask = resources.compiles & (resources.shared_bytes <= limit)
    threads = candidates.fields["num_warps"] * (hardware.warp_size or 32)
    mask &= threads <= 1024
    if hardware.registers_per_unit:
        mask &= resources.registers * threads <= hardware.registers_per_unit
    return mask


def worth_compiling(candidates: Candidates, problem: MMShape) -> npt.NDArray[np.bool_]:
    """All but configs of full float32 so large that the compiler takes from three seconds to three
    minutes: without a matrix unit a block is unrolled into single multiply-adds. On the H200 none
    of them was the fastest on any of 1,596 problems."""
    if problem.dtype != "float32" or problem.tf32:
        return np.ones(len(candidates), bool)
    fields = candidates.fields
    block = fields["block_m"].astype(np.int64) * fields["block_n"] * fields["block_k"]
    return np.asarray(block <= _MOST_UNROLLED * fields["num_warps"])


def keeps_registers_in_one_step(candidates: Candidates, problem: MMShape) -> npt.NDArray[np.bool_]:
    """All but configs of full float32 that run out of registers where K fits a block: with no loop
    to pipeline, the compiler loads operands into registers, and spills what is too much. Hardly any
    was near the best on the H200 ("Spills" in docs/experiments.md)."""
    if problem.dtype != "float32" or problem.tf32:
        return np.ones(len(candidates), bool)
    fields = candidates.fields
    block = fields["block_m"].astype(np.int64) * fields["block_n"] * fields["block_k"]
    unrolled = block <= _MOST_IN_ONE_STEP[problem.op] * fields["num_warps"]
    held = block * fields["block_k"] < _MOST_HELD_IN_ONE_STEP * fields["num_warps"]
    return np.asarray(unrolled & held)


def reads_a_as_it_lies(
    candidates: Candidates, problem: MMShape, hardware: Hardware
) -> npt.NDArray[np.bool_]:
    """All but configs that have to turn A round in registers: on Hopper, in TF32, the matrix unit
    wants both operands along K, and a transposed A is not. Half took more than four times as long
    as the best ("A transposed A in TF32" in docs/experiments.md)."""
    if not (problem.tf32 and problem.transpose_a and arch_number(hardware.arch) // 10 == 9):
        return np.ones(len(candidates), bool)
    return ~uses_matrix_unit_on_shared(candidates, problem, hardware)


def uses_matrix_unit_on_shared(
    candidates: Candidates, problem: MMShape, hardware: Hardware
) -> npt.NDArray[np.bool_]:
    """Where the matrix unit reads its operands from shared memory: Hopper and datacentre
    Blackwell, with blocks of 64 rows or more, four warps or more, and not in full float32."""
    major = arch_number(hardware.arch) // 10
    if major not in (9, 10) or (problem.dtype == "float32" and not problem.tf32):
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
    """TMA's blocks start on 1 KiB; in full float32 a transposed B is held once more, to be turned
    round. Seen in compiled kernels, where it is the difference to the rule above."""
    f = candidates.fields
    turned = problem.dtype == "float32" and not problem.tf32 and problem.transpose_b
    again = f["block_n"].astype(np.int64) * f["block_k"] * DTYPE_BYTES[problem.dtype] * turned
    return np.where(_uses_tma(candidates), _TMA_ALIGNMENT + _BARRIER_BYTES + again, 0)


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
    """The accumulator; some registers for each address a thread loads 16 bytes from, except with
    TMA; operand fragments where they pass through registers; and what every kernel needs.

    An estimate, within a fifth of compiled kernels on Hopper for most configs: it serves to tell
    how many blocks a unit can hold, and nothing is left out of the space because of it, since the
    compiler never takes more than a block of that many threads can have.
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
