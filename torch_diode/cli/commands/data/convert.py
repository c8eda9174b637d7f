"""`torch-diode convert`: convert, merge and filter datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.output import note_progress, print_line
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import Overwrite, complete
from torch_diode.types.timing import DUPLICATES


def convert(
    context: typer.Context,
    inputs: Annotated[list[Path], typer.Argument(help="Dataset files or directories of shards.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")],
    hardware: filters.Hardware = None,
    operations: filters.Operations = None,
    duplicates: Annotated[
        str,
        typer.Option(
            help="A timing that occurs twice: refuse, or keep the first or the last.",
            autocompletion=complete(DUPLICATES),
        ),
    ] = "refuse",
    collected: Annotated[
        str | None,
        typer.Option(help="Date of the timings, such as 2024-08, of logs that do not tell theirs."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Convert, merge and filter datasets.

    The output's ending names its form. Logs of PyTorch's AutoHeuristic (.txt, .txt.gz) are read
    wherever a dataset is; the file's name, or its folder's, has to tell the chip: a100_mm.txt.
    Those of flex attention become Parquet.

    Example: torch-diode convert old.json shards/ --output all.parquet --hardware nvidia-h200
    """
    from torch_diode.toolkit import datasets

    dataset = datasets.convert(
        inputs,
        output,
        form=context.obj.form,
        hardware=hardware,
        ops=operations or (),
        duplicates=duplicates,
        overwrite=overwrite,
        collected=collected,
        progress=note_progress,
    )
    size = output.stat().st_size / 1e6
    print_line(
        f"{output}: {len(dataset):,} timings of {len(dataset.problems):,} problems, {size:.1f} MB"
    )
