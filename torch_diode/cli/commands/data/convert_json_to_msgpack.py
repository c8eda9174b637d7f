"""`torch-diode convert-json-to-msgpack`: many JSON datasets, each to a MessagePack beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from torch_diode.cli.commands.data.convert import refuse_existing
from torch_diode.cli.console.output import console, print_line
from torch_diode.files.datasets import form_of, read_dataset, write_dataset
from torch_diode.types.errors import FileFaultError


def convert_json_to_msgpack(
    input_files: Annotated[list[Path], typer.Option(help="JSON datasets.")],
    output_dir: Annotated[
        Path | None, typer.Option(help="Where to write; beside each input if not given.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace outputs that exist.")] = False,
) -> None:
    """Convert JSON datasets to MessagePack, file by file.

    Example: torch-diode convert-json-to-msgpack --input-files a.json b.json --output-dir packed
    """
    outputs = [(output_dir or path.parent) / f"{path.stem}.msgpack" for path in input_files]
    if len(set(outputs)) < len(outputs):
        twice = next(output for output in outputs if outputs.count(output) > 1)
        raise FileFaultError(f"{twice}: got two inputs that go there; convert one of them apart")
    for path, output in zip(input_files, outputs, strict=True):
        if form_of(path) != "json":
            raise FileFaultError(f"{path}: got no JSON file; expected the ending .json")
        refuse_existing(output, overwrite)
    pairs = list(zip(input_files, outputs, strict=True))
    for path, output in track(pairs, "Converting", console=console(), transient=True):
        dataset = read_dataset(path)
        write_dataset(dataset, output)
        print_line(f"{output}: {len(dataset):,} timings")
