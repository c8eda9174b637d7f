"""`torch-diode convert`: between the forms, many files into one, or a part of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.output import print_line
from torch_diode.files.datasets import FORMS, form_of, write_dataset
from torch_diode.files.file_errors import naming_file
from torch_diode.toolkit.selection import selected
from torch_diode.types.errors import FileFaultError


def convert(
    context: typer.Context,
    inputs: Annotated[list[Path], typer.Argument(help="Dataset files or directories of shards.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")],
    hardware: Annotated[str | None, typer.Option(help="Only this hardware.")] = None,
    operations: Annotated[list[str] | None, typer.Option(help="Only these operations.")] = None,
    duplicates: Annotated[
        str, typer.Option(help="A timing met twice: refuse, or keep the first or the last.")
    ] = "refuse",
    overwrite: Annotated[bool, typer.Option(help="Replace the output if it exists.")] = False,
) -> None:
    """Convert, merge and filter datasets; the output's ending names its form.

    Example: torch-diode convert old.json shards/ --output all.parquet --hardware nvidia-h200
    """
    form = form_for(output, context.obj.form)
    refuse_existing(output, overwrite)
    dataset = selected(inputs, hardware, operations or [], duplicates)
    write_dataset(dataset, output, form)
    size = output.stat().st_size / 1e6
    print_line(
        f"{output}: {len(dataset):,} timings of {len(dataset.problems):,} problems, {size:.1f} MB"
    )


def form_for(output: Path, asked: str | None) -> str:
    """The form to write: the ending's, or the one asked for where the ending names none."""
    if asked is None or output.suffix.lower().lstrip(".") in FORMS:
        named = form_of(output)
        if asked not in (None, named):
            raise FileFaultError(
                f"{output}: got --format {asked} and the ending .{named}; expected both the same"
            )
        return named
    return asked


def refuse_same(output: Path, *inputs: Path) -> None:
    """What is read is not to be written over."""
    for path in inputs:
        with naming_file(output):
            same = output.exists() and path.exists() and output.samefile(path)
        if same:
            raise FileFaultError(f"{output}: got what is read as the output; choose another name")


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Nothing is lost by accident: an existing file needs the word for it."""
    with naming_file(path):
        there = path.exists()
    if there and not overwrite:
        raise FileFaultError(f"{path}: exists already; choose another name or give --overwrite")
