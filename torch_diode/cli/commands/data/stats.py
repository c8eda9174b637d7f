"""`torch-diode stats`: what is in a dataset. Other commands print the same after they collect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from torch_diode.cli.console.output import print_json, print_line, print_table
from torch_diode.toolkit import dataset_summary
from torch_diode.toolkit.selection import selected
from torch_diode.types.dataset import Dataset


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
    chosen = selected([dataset], hardware, operations or [])
    if as_json:
        print_json(as_data(chosen, limit))
    else:
        print_statistics(chosen, limit)


def print_statistics(dataset: Dataset, limit: int = 20, lists_all: str = "--limit 0") -> None:
    """The statistics as a person reads them; `lists_all` is what to give for all problems."""
    print_line(f"{len(dataset):,} timings of {len(dataset.problems):,} problems")
    print_line(f"Hardware: {', '.join(dataset.texts('hardware'))}")
    released = [t for t in dataset.texts("torch") if t]
    if released:
        print_line(f"Measured with torch {', '.join(released)}")
    print_table(
        ("hardware", "operation", "problems", "configs", "failed"),
        [
            (o.hardware, o.op, o.problems, o.configs, o.failed)
            for o in dataset_summary.operations(dataset)
        ],
        right="llrrr",
    )
    listed = dataset_summary.problems(dataset, limit or None)
    rows = []
    for item in listed:
        problem, best = item.example.problem, item.fastest
        sizes = (problem.B, problem.M, problem.N, problem.K)
        found = (str(best.candidate), best.time_us) if best else ("none ran", None)
        rows.append((problem.op, *sizes, problem.dtype, problem.layout, item.configs, *found))
    names = ("op", "B", "M", "N", "K", "dtype", "layout", "configs", "fastest", "µs")
    print_table(names, rows, right="lrrrrllrlr")
    if len(listed) < len(dataset.problems):
        more = len(dataset.problems) - len(listed)
        print_line(f"… and {more:,} more problems ({lists_all} lists all)")


def as_data(dataset: Dataset, limit: int = 0) -> dict[str, Any]:
    """The statistics as JSON has them."""
    return {
        "timings": len(dataset),
        "digest": dataset.digest,
        "operations": [vars(item) for item in dataset_summary.operations(dataset)],
        "problems": [
            {
                "hardware": item.hardware,
                "problem": item.example.problem.to_dict(),
                "configs": item.configs,
                "failed": item.failed,
                "fastest": item.fastest.candidate.to_dict() if item.fastest else None,
                "time_us": item.fastest.time_us if item.fastest else None,
            }
            for item in dataset_summary.problems(dataset, limit or None)
        ],
    }
