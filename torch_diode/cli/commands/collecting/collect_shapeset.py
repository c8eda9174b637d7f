"""`torch-diode collect-shapeset`: time kernels on the problems of a shape set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.cli.options.default_paths import new_dataset
from torch_diode.cli.options.parameters import taking
from torch_diode.toolkit.collecting.collect import collect, select_problems


@taking(options.RUN, options.NOISE)
def collect_shapeset(
    context: typer.Context,
    shapeset: Path = options.SHAPE_SET,
    output: Path | None = options.OUTPUT,
    operations: list[str] | None = options.OPERATIONS,
    dtypes: list[str] | None = options.DTYPES,
    **given: Any,
) -> None:
    """Time every candidate kernel on the problems of a file.

    Run again after a kill or Ctrl-C, it continues.

    Example: torch-diode collect-shapeset --shapeset shapes.json --output timings.parquet
    """
    settings = options.collect_options(context, given)
    problems = select_problems(shapeset, operations or (), dtypes or ())
    with ConsoleProgress() as progress:
        result = collect(new_dataset(context, output), problems, settings, progress=progress)
    print_collection(result)
