"""`torch-diode convert-json-to-msgpack`: many JSON datasets, each to a MessagePack beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options.parameters import Overwrite


def convert_json_to_msgpack(
    input_files: Annotated[list[Path], typer.Option(help="JSON datasets.")],
    output_dir: Annotated[
        Path | None, typer.Option(help="Where to write; beside each input if not given.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Convert JSON datasets to MessagePack, file by file.

    Example: torch-diode convert-json-to-msgpack --input-files a.json b.json --output-dir packed
    """
    from torch_diode.toolkit import datasets

    with ConsoleProgress() as progress:
        datasets.convert_json_to_msgpack(
            input_files, output_dir, overwrite=overwrite, progress=progress
        )
