"""Statistics of a dataset, printed after collecting and by `torch-diode stats`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from torch_diode.cli.console.output import megabytes, print_line, print_table

if TYPE_CHECKING:
    from torch_diode.toolkit.collecting.collect import CollectionResult
    from torch_diode.toolkit.datasets import DatasetStatistics

_LISTED = 1000
"""Problems that are listed when all are timed."""


def print_statistics(result: DatasetStatistics, lists_all: str = "--limit 0") -> None:
    """Print statistics as tables; `lists_all` is the option that lists all problems."""
    dataset = result.dataset
    print_line(f"{len(dataset):,} timings of {len(dataset.problems):,} problems")
    print_line(f"Hardware: {', '.join(dataset.texts('hardware'))}")
    releases = [text for text in dataset.texts("torch") if text]
    if releases:
        print_line(f"Measured with torch {', '.join(releases)}")
    print_table(
        ("hardware", "operation", "problems", "configs", "failed"),
        [(o.hardware, o.op, o.problems, o.configs, o.failed) for o in result.operations],
        right="llrrr",
    )
    rows = []
    for item in result.problems:
        problem, best = item.example.problem, item.fastest
        sizes = (problem.B, problem.M, problem.N, problem.K)
        fastest = (str(best.candidate), best.time_us) if best else ("none ran", None)
        rows.append((problem.op, *sizes, problem.dtype, problem.layout, item.configs, *fastest))
    names = ("op", "B", "M", "N", "K", "dtype", "layout", "configs", "fastest", "µs")
    print_table(names, rows, right="lrrrrllrlr")
    more = len(dataset.problems) - len(result.problems)
    if more:
        print_line(f"… and {more:,} more problems ({lists_all} lists all)")


def print_collection(result: CollectionResult) -> None:
    """Print the statistics of a dataset that was collected."""
    from torch_diode.toolkit.datasets import stats

    if result.reused:
        return
    print_line(f"{result.path}: {megabytes(result.path)}")
    lists_all = f"torch-diode stats {shlex.quote(str(result.path))} --limit 0"
    print_statistics(stats(result.dataset, limit=_LISTED), lists_all)
