"""`torch-diode convert`: convert, merge and filter datasets."""

from __future__ import annotations

from pathlib import Path

import typer

from torch_diode.cli.console.output import megabytes, note_progress, print_line
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import OUTPUT, OVERWRITE, option
from torch_diode.types.timing import DUPLICATES


def convert(
    context: typer.Context,
    inputs: list[Path] = typer.Argument(..., help="Dataset files or directories of shards."),
    output: Path = OUTPUT,
    hardware: str | None = filters.HARDWARE,
    operations: list[str] | None = filters.OPERATIONS,
    duplicates: str = option(
        "A timing that occurs twice: refuse, or keep the first or the last.",
        default="refuse",
        values=DUPLICATES,
    ),
    collected: str | None = option(
        "Date of the timings, such as 2024-08, of logs that do not tell theirs."
    ),
    overwrite: bool = OVERWRITE,
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
    problems, size = len(dataset.problems), megabytes(output)
    print_line(f"{output}: {len(dataset):,} timings of {problems:,} problems, {size}")
