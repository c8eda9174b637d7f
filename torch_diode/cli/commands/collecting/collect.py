"""`torch-diode collect`: time kernels on generated shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.cli.options.default_paths import new_dataset
from torch_diode.cli.options.parameters import taking
from torch_diode.toolkit.collecting.collect import collect as run


@taking(options.RUN, options.NOISE, options.DRAWING)
def collect(context: typer.Context, output: Path | None = options.OUTPUT, **given: Any) -> None:
    """Time every candidate kernel on drawn shapes.

    Run again after a kill or Ctrl-C, it continues.

    Example: torch-diode --seed 42 collect --output timings.parquet --num-shapes 100 --log-normal
    """
    settings, sampling = options.collect_options(context, given), options.shape_sampling(given)
    with ConsoleProgress() as progress:
        result = run(new_dataset(context, output), sampling, settings, progress=progress)
    print_collection(result)
