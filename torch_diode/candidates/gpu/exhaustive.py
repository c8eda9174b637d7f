"""Every config a Triton matmul template has, by the rule Inductor makes its exhaustive list by.

The rule is in `torch/_inductor/template_heuristics/triton.py` and has been the same since 2.9: a
product of block sizes, stages and warps; warps capped at one for each 16x16 tile of the output; no
config whose accumulator alone overflows the registers. What differs between releases is only
whether it is then cut by shared memory (2.9, 2.10) or not; here the space does that, for all.

Inductor also caps each block at the problem's size rounded up to a power of two and drops the
duplicates. Since the product holds all smaller blocks too, that comes to the same set as leaving
out the larger ones, which is what `space` does with a mask.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates

BLOCKS = (16, 32, 64, 128, 256)
TMA_TEMPLATES = frozenset({"triton::mm_persistent_tma"})
TRITON_TEMPLATES = ("triton::mm", "triton::bmm", *sorted(TMA_TEMPLATES))

_ELEMENTS_A_WARP = 256
_MAX_REGISTERS = 255
_LANES = 32
"""Inductor counts 32 lanes a warp when it looks for overflowing accumulators, on AMD too."""


@dataclass(frozen=True)
class _Rule:
    """The values each field may take, before configs are capped, filtered and made distinct."""

    num_stages: tuple[int, ...]
    num_warps: tuple[int, ...]
    group_m: tuple[int, ...] = (8,)
    matrix_instr_nonkdim: tuple[int, ...] = (0,)
    waves_per_eu: tuple[int, ...] = (0,)
    kpack: tuple[int, ...] = (0,)


_RULES = {
    "cuda": _Rule(num_stages=(1, 2, 3, 4, 5), num_warps=(2, 4, 8)),
    # AMD's stages are all set to the backend's one value, which is 2.
    "rocm": _Rule(
        num_stages=(2,),
        num_warps=(4, 8),
        group_m=(4, 8, 16),
        matrix_instr_nonkdim=(0, 16),
        waves_per_eu=(0, 2),
        kpack=(1, 2),
    ),
}


@lru_cache(maxsize=32)
def exhaustive_configs(template: str, kind: str) -> Candidates:
    """All configs of a template on a kind of hardware, in Inductor's order; empty where Inductor
    has no exhaustive list for it."""
    rule = _RULES.get(kind)
    if rule is None or template not in TRITON_TEMPLATES:
        return Candidates.of(())
    columns = _product(rule)
    if template in TMA_TEMPLATES:
        # Two warps are not safe with TMA; the test is on the number before it is capped.
        columns = {name: values[columns["num_warps"] != 2] for name, values in columns.items()}
    columns = _finish(columns)
    count = len(columns["block_m"])
    fields = {name: np.ones(count, np.int32) for name in NUMBER_FIELDS} | columns
    for values in fields.values():
        values.setflags(write=False)
    return Candidates((template,), np.zeros(count, np.int32), fields)


def _product(rule: _Rule) -> dict[str, npt.NDArray[np.int32]]:
    axes = {
        **dict.fromkeys(("block_m", "block_n", "block_k"), BLOCKS),
        "num_stages": rule.num_stages,
        "num_warps": rule.num_warps,
        "group_m": rule.group_m,
        "matrix_instr_nonkdim": rule.matrix_instr_nonkdim,
        "waves_per_eu": rule.waves_per_eu,
        "kpack": rule.kpack,
    }
    rows = np.array(list(itertools.product(*axes.values())), dtype=np.int32)
    return {name: rows[:, i].copy() for i, name in enumerate(axes)}


def _finish(columns: dict[str, npt.NDArray[np.int32]]) -> dict[str, npt.NDArray[np.int32]]:
    """Drop what overflows the registers, cap the warps, keep each config once."""
    tile = columns["block_m"] * columns["block_n"]
    fits = -(-tile // (columns["num_warps"] * _LANES)) <= _MAX_REGISTERS
    # kpack 2 with so short a K block crashes AMD's compiler.
    fits &= (columns["kpack"] < 2) | (columns["block_k"] > 16)
    columns = {name: values[fits] for name, values in columns.items()}
    columns["num_warps"] = np.minimum(columns["num_warps"], tile[fits] // _ELEMENTS_A_WARP)
    waves = columns["waves_per_eu"]
    columns["waves_per_eu"] = np.where(waves > 0, 8 // columns["num_warps"], 0).astype(np.int32)
    rows = np.stack(list(columns.values()), axis=1)
    _, first = np.unique(rows, axis=0, return_index=True)
    return {name: values[np.sort(first)] for name, values in columns.items()}
