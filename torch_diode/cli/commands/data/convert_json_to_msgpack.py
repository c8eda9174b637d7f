"""`torch-diode convert-json-to-msgpack`: many JSON datasets, each to a MessagePack beside it."""

from __future__ import annotations

from pathlib import Path

from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options.parameters import OVERWRITE, option, required


def convert_json_to_msgpack(
    input_files: list[Path] = required("JSON datasets."),
    output_dir: Path | None = option("Where to write; beside each input if not given."),
    overwrite: bool = OVERWRITE,
) -> None:
    """Convert JSON datasets to MessagePack, file by file.

    Example: torch-diode convert-json-to-msgpack --input-files a.json b.json --output-dir packed
    """
    from torch_diode.toolkit import datasets

    with ConsoleProgress() as progress:
        datasets.convert_json_to_msgpack(
            input_files, output_dir, overwrite=overwrite, progress=progress
        )
