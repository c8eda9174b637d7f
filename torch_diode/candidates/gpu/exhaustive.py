"""All configs of a Triton matmul template, by the rule of Inductor's exhaustive search.

The rule is in `torch/_inductor/template_heuristics/triton.py` and has been the same since 2.9: a
product of block sizes, stages and warps; warps capped at one per 16x16 tile of the output; no
config whose accumulator alone overflows the registers. Releases differ only in whether they filter
by shared memory (2.9, 2.10); here the space does so for all.

Inductor also caps each block at the problem's size rounded up to a power of two and drops
duplicates. Since the product contains all smaller blocks, this equals excluding the larger ones,
which `space` does with a mask.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from torch_diode.types.candidate import TMA_TEMPLATES, TRITON_TEMPLATES
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates

BLOCKS = (16, 32, 64, 128, 256)

_ELEMENTS_A_WARP = 256
_MAX_REGISTERS = 255
_LANES = 32
"""Inductor assumes 32 lanes per warp when it checks the accumulator, on AMD too."""


_AXES = (
    *("block_m", "block_n", "block_k", "num_stages", "num_warps", "group_m"),
    *("matrix_instr_nonkdim", "waves_per_eu", "kpack"),
)
_VALUES: dict[str, tuple[tuple[int, ...], ...]] = {
    "cuda": (BLOCKS, BLOCKS, BLOCKS, (1, 2, 3, 4, 5), (2, 4, 8), (8,), (0,), (0,), (0,)),
    # On AMD, stages are always the backend's one value, 2.
    "rocm": (BLOCKS, BLOCKS, BLOCKS, (2,), (4, 8), (4, 8, 16), (0, 16), (0, 2), (1, 2)),
}
"""Values on each axis before configs are capped, filtered and deduplicated."""


@lru_cache(maxsize=32)
def exhaustive_configs(template: str, kind: str) -> Candidates:
    """All configs of a template on a kind of hardware, in Inductor's order; empty for templates and
    hardware without an exhaustive list."""
    if kind not in _VALUES or template not in TRITON_TEMPLATES:
        return Candidates.of(())
    rows = np.array(list(itertools.product(*_VALUES[kind])), dtype=np.int32)
    columns = {name: rows[:, i].copy() for i, name in enumerate(_AXES)}
    if template in TMA_TEMPLATES:
        # Two warps are not safe with TMA; the check is before the number is capped.
        columns = {name: values[columns["num_warps"] != 2] for name, values in columns.items()}
    columns = _finish(columns)
    count = len(columns["block_m"])
    fields = {name: np.ones(count, np.int32) for name in NUMBER_FIELDS} | columns
    for values in fields.values():
        values.setflags(write=False)
    return Candidates((template,), np.zeros(count, np.int32), fields)


def _finish(columns: dict[str, npt.NDArray[np.int32]]) -> dict[str, npt.NDArray[np.int32]]:
    """Drop configs that overflow the registers, cap the warps, and deduplicate."""
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
