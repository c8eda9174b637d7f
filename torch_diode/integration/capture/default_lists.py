"""Membership of timings in Inductor's DEFAULT lists, for thousands of problems at once.

`default_configs` takes one lowering per problem. But the lists derive from few: blocks are capped
by the problem's sizes, and warps by the capped tile. So Inductor is called once per op and dtype,
at sizes that cap nothing, and the capping is done here on arrays. A test compares the two from
torch 2.11 on; 2.10 caps a few small blocks differently.

Inductor needs Triton for that. Without it, the lists are those kept in `default_lists.json`, a
lookup table that `workflows/default_lists.py` writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.gpu.eligibility import (
    DECOMPOSE_K_THRESHOLD,
    TRITON_DTYPES,
    has_tma,
    rows_aligned,
)
from torch_diode.candidates.gpu.exhaustive import BLOCKS
from torch_diode.candidates.space import loops_over_k
from torch_diode.files.tables import read_table
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import ATEN, CONFIG_FIELDS, TMA_TEMPLATES, Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, DTYPE_BYTES, MMShape
from torch_diode.types.table import Table

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

KEPT = Path(__file__).with_suffix(".json")
KEPT_CHIP = "nvidia-h200"
_LARGE = 8192
_LEAST_UNITS = 68
"""Inductor lists nothing for smaller chips."""
_OUTPUTS_PER_WARP = 256
_BLOCKS = ("block_m", "block_n", "block_k")


@dataclass(frozen=True, eq=False)
class Listed:
    """Mask of rows that are in their problem's list, and the timed fraction of all lists."""

    rows: Mask
    coverage: float
    note: str = ""
    """Origin of the lists where they are not the installed torch's."""


def listed_rows(dataset: Dataset, rows: Numbers, hardware: Hardware) -> Listed:
    """Find the rows of a dataset that are ATen or a config of their problem's list."""
    problems = _Problems(dataset)
    group = dataset.problems.ids[rows]
    template, names = dataset.codes("template")
    codes = template[rows]
    fields = {name: dataset.values(name)[rows] for name in CONFIG_FIELDS}
    found = np.isin(codes, [i for i, name in enumerate(names) if name == ATEN])
    met = np.zeros(len(problems.op), bool)
    met[group[~found]] = True
    timed = listed = 0
    for op, dtype in sorted(set(zip(problems.op[met], problems.dtype[met], strict=True))):
        if dtype not in TRITON_DTYPES:
            continue
        candidates = base_list(str(op), str(dtype), hardware)
        for name in sorted({candidate.template for candidate in candidates}):
            offered = met & problems.offers(str(op), str(dtype), name, hardware)
            code = names.index(name) if name in names else -1
            members = np.flatnonzero(offered[group] & (codes == code))
            caps, k = problems.caps[group[members]], problems.k[group[members]]
            part = {field: values[members] for field, values in fields.items()}
            for candidate in candidates:
                if candidate.template == name:
                    hits = members[_matches(candidate, part, caps, k)]
                    found[hits] = True
                    listed += int(np.count_nonzero(offered))
                    timed += len(np.unique(group[hits]))
    return Listed(found, timed / listed if listed else 1.0, _note())


def _note() -> str:
    if torch_compat.has_triton():
        return ""
    return f"that of torch {dict(_kept().provenance)['torch']}, since triton is not installed"


@lru_cache(maxsize=64)
def base_list(op: str, dtype: str, hardware: Hardware) -> tuple[Candidate, ...]:
    """The Triton configs of the list before capping."""
    return _configs(large_problem(op, dtype=dtype), hardware)


@lru_cache(maxsize=16)
def _lists_outer(op: str, hardware: Hardware) -> bool:
    """True if there is a list for K = 1: most ops, by release, then multiply elementwise."""
    return bool(_configs(large_problem(op, k=1), hardware))


def large_problem(op: str, k: int = _LARGE, dtype: str = "bfloat16") -> MMShape:
    """A problem whose M and N cap nothing."""
    return MMShape(op, _LARGE, _LARGE, k, B=2 if op in BATCHED else 1, dtype=dtype)


def _configs(problem: MMShape, hardware: Hardware) -> tuple[Candidate, ...]:
    if torch_compat.has_triton():
        from torch_diode.integration.capture.default_configs import default_candidates

        return tuple(c for c in default_candidates(problem, hardware) if c.config is not None)
    if hardware.units < _LEAST_UNITS:
        return ()
    # Neither the chip nor the dtype makes a difference, except for TMA: see `offers`.
    entries = _kept().lookup(KEPT_CHIP, replace(problem, dtype="bfloat16", out_dtype="bfloat16"))
    return tuple(entry.candidate for entry in entries)


@lru_cache(maxsize=1)
def _kept() -> Table:
    return read_table(KEPT)


class _Problems:
    """The columns of a dataset's problems that the lists depend on."""

    def __init__(self, dataset: Dataset) -> None:
        first = dataset.problems.first
        self.op, self.dtype, out_dtype = (
            np.array(texts, np.str_)[codes[first]]
            for codes, texts in map(dataset.codes, ("op", "dtype", "out_dtype"))
        )
        sizes = {name: dataset.values(name)[first].astype(np.int64) for name in "MNK"}
        m, n, k = (sizes[name] for name in "MNK")
        self.k = k
        # The largest blocks: the next powers of two of the sizes, at least 16.
        powers = 2 ** np.ceil(np.log2(np.stack([m, n, k], axis=1))).astype(np.int64)
        self.caps = np.maximum(powers, BLOCKS[0])
        # Where K is by far the largest, only splits are listed.
        split = (self.op == "mm") & (k >= DECOMPOSE_K_THRESHOLD * np.maximum(m, n))
        self.has_triton = ~split & (self.dtype == out_dtype)
        self.is_outer = k == 1
        item = np.array([DTYPE_BYTES[str(name)] for name in self.dtype])
        a, b = (dataset.values(name)[first] for name in ("transpose_a", "transpose_b"))
        # Not `tma_aligned`: Inductor lists TMA for a single row too, although its result is wrong.
        self.is_aligned: Mask = rows_aligned((m, n, k), a, b, item)

    def offers(self, op: str, dtype: str, template: str, hardware: Hardware) -> Mask:
        """Mask of the problems of this op and dtype that are offered this template."""
        offered = (self.op == op) & (self.dtype == dtype) & self.has_triton
        if (offered & self.is_outer).any() and not _lists_outer(op, hardware):
            offered &= ~self.is_outer
        if template in TMA_TEMPLATES:
            offered &= self.is_aligned & has_tma(hardware)
        return np.asarray(offered)


def _matches(candidate: Candidate, fields: dict[str, Numbers], caps: Numbers, k: Numbers) -> Mask:
    config = candidate.triton
    assert config is not None
    capped = [np.minimum(getattr(config, name), caps[:, i]) for i, name in enumerate(_BLOCKS)]
    warps = np.maximum(np.minimum(config.num_warps, capped[0] * capped[1] // _OUTPUTS_PER_WARP), 1)
    matches = np.asarray(fields["num_warps"] == warps)
    for name, values in zip(_BLOCKS, capped, strict=True):
        matches &= fields[name] == values
    loops = loops_over_k(candidate.template, fields["block_k"], k)
    matches &= ~loops | (fields["num_stages"] == config.num_stages)
    return np.asarray(matches & (fields["group_m"] == config.group_m))
