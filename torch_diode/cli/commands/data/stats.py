"""`torch-diode stats`: statistics of a dataset, which collecting commands print too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.dataset_statistics import print_statistics
from torch_diode.cli.console.output import note_progress, print_json
from torch_diode.cli.options import filters


def stats(
    dataset: Annotated[Path, typer.Argument(help="Dataset file or directory of shards.")],
    hardware: filters.Hardware = None,
    operations: filters.Operations = None,
    limit: Annotated[int, typer.Option(help="Problems to list; 0 lists all.", min=0)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
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
