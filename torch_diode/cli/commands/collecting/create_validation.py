"""`torch-diode create-validation`: collect a dataset that shares no problem with training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.cli.options.default_paths import VALIDATION, new_dataset
from torch_diode.cli.options.parameters import option, taking
from torch_diode.toolkit.collecting.collect import select_problems


@taking(options.RUN, options.NOISE, options.DRAWING)
def create_validation(
    context: typer.Context,
    output: Path | None = options.OUTPUT_VALIDATION,
    shapeset: Path | None = option("Shape set (.json, .msgpack, .csv) to take problems from."),
    exclude: list[Path] | None = option(
        "Dataset to share no problem with, may be given again; without it, all in the working "
        "directory, beside the output and beside its folder, and in folders there."
    ),
    **given: Any,
) -> None:
    """Time problems that no training data has, to validate on.

    It prints the datasets it compared with. No seed draws the shapes that `collect` draws with it.

    Example: torch-diode --seed 43 create-validation --output validation.parquet --num-shapes 50
    """
    settings, sampling = options.collect_options(context, given), options.shape_sampling(given)
    ops, dtypes = given["operations"] or (), given["dtypes"] or ()
    problems = select_problems(shapeset, ops, dtypes) if shapeset else sampling
    from torch_diode.toolkit.collecting.create_validation import create_validation as run

    path = new_dataset(context, output, VALIDATION)
    with ConsoleProgress() as progress:
        result = run(path, problems, settings, exclude=exclude or (), progress=progress)
    print_collection(result)
