"""A dataset in numbers a person reads: by hardware, by operation, by problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_diode.types.dataset import Dataset
from torch_diode.types.timing import Timing


@dataclass(frozen=True)
class ProblemSummary:
    """One problem: how many configs were timed, how many could not run, and the fastest."""

    hardware: str
    op: str
    configs: int
    failed: int
    fastest: Timing | None
    example: Timing


@dataclass(frozen=True)
class OperationSummary:
    """One operation on one hardware."""

    hardware: str
    op: str
    problems: int
    configs: int
    failed: int


def operations(dataset: Dataset) -> list[OperationSummary]:
    """Problems and configs of each operation of each hardware."""
    kinds = dataset.group(("hardware", "op"))
    failed = np.bincount(kinds.ids, np.isnan(dataset.values("time_us")), len(kinds)).astype(int)
    problems = np.bincount(kinds.ids[dataset.problems.first], minlength=len(kinds))
    result = []
    for row, *counts in zip(kinds.first, problems, kinds.counts - failed, failed, strict=True):
        example = dataset[int(row)]
        summary = OperationSummary(example.hardware, example.problem.op, *map(int, counts))
        result.append(summary)
    return sorted(result, key=lambda summary: summary.hardware)


def problems(dataset: Dataset, limit: int | None = None) -> list[ProblemSummary]:
    """Each problem with its fastest config, in the order of the dataset, at most `limit`."""
    groups, times = dataset.problems, dataset.values("time_us")
    fastest = groups.fastest(times)
    best_of = dict(zip(groups.ids[fastest].tolist(), fastest.tolist(), strict=True))
    failed = np.bincount(groups.ids, weights=np.isnan(times), minlength=len(groups))
    result = []
    for number in range(len(groups) if limit is None else min(limit, len(groups))):
        example = dataset[int(groups.first[number])]
        bad = int(failed[number])
        best = dataset[best_of[number]] if number in best_of else None
        count = int(groups.counts[number]) - bad
        summary = ProblemSummary(example.hardware, example.problem.op, count, bad, best, example)
        result.append(summary)
    return result
