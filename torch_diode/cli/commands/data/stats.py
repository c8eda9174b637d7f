"""`torch-diode stats`: statistics of a dataset, which collecting commands print too."""

from __future__ import annotations

from pathlib import Path

import typer

from torch_diode.cli.console.dataset_statistics import print_statistics
from torch_diode.cli.console.output import note_progress, print_json
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import AS_JSON, LIMIT


def stats(
    dataset: Path = typer.Argument(..., help="Dataset file or directory of shards."),
    hardware: str | None = filters.HARDWARE,
    operations: list[str] | None = filters.OPERATIONS,
    limit: int = LIMIT,
    as_json: bool = AS_JSON,
) -> None:
    """Show what a dataset holds, and its fastest configs.

    Example: torch-diode stats tutorial_dataset.msgpack --limit 5
    """
    from torch_diode.toolkit import datasets

    result = datasets.stats(dataset, hardware, operations or (), limit or None, note_progress)
    if as_json:
        print_json(result.to_dict())
    else:
        print_statistics(result)
