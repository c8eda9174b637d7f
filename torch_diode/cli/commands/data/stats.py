"""`torch-diode stats`: statistics of a dataset, which collecting commands print too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.output import note_progress, print_json, print_line, print_table
from torch_diode.toolkit import datasets
from torch_diode.toolkit.datasets import DatasetStatistics


def stats(
    dataset: Annotated[Path, typer.Argument(help="Dataset file or directory of shards.")],
    hardware: Annotated[str | None, typer.Option(help="Only this hardware.")] = None,
    operations: Annotated[list[str] | None, typer.Option(help="Only these operations.")] = None,
    limit: Annotated[int, typer.Option(help="Problems to list; 0 lists all.", min=0)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show a dataset's hardware, operations, problems and fastest configs.

    Example: torch-diode stats tutorial_dataset.msgpack --limit 5
    """
    result = datasets.stats(dataset, hardware, operations or (), limit or None, note_progress)
    if as_json:
        print_json(result.to_dict())
    else:
        print_statistics(result)


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
