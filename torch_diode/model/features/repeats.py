"""Candidates that were measured more than once: one time of all their timings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.types import schema
from torch_diode.types.dataset import Dataset
from torch_diode.types.grouping import column_numbers, number_rows


@dataclass(frozen=True, eq=False)
class MergedTimings:
    """Rows of a dataset, their times, and each time's standard error as a fraction of it."""

    rows: npt.NDArray[np.int64]
    time_us: npt.NDArray[np.floating]
    noise: npt.NDArray[np.floating]


def merge_repeats(dataset: Dataset, measured: MergedTimings) -> MergedTimings:
    """One row for each candidate of each problem, whatever the method and the torch release: the
    first of its rows, with the mean of all its log times, weighted by how certain they are."""
    names = schema.CANDIDATE_NAMES
    keys = [column_numbers(dataset.table.column(name))[measured.rows] for name in names]
    ids = number_rows([dataset.problems.ids[measured.rows], *keys], len(measured.rows))
    count = int(ids.max()) + 1 if len(ids) else 0
    if count == len(ids):
        return measured
    first = np.empty(count, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]
    weight = 1 / np.square(np.maximum(measured.noise.astype(np.float64), 1e-4))
    total = np.bincount(ids, weight)
    mean = np.bincount(ids, weight * np.log(measured.time_us.astype(np.float64))) / total
    return MergedTimings(measured.rows[first], np.exp(mean), 1 / np.sqrt(total))
