"""Reading a dataset as every command does: a file, or a directory's datasets as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch_diode.cli.console.output import note
from torch_diode.files.datasets import FORMS, read_dataset, shards
from torch_diode.files.file_errors import naming_file
from torch_diode.files.header import check_header
from torch_diode.files.json import read_json
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError, EmptySelectionError, InvalidValueError


def read_all(path: Path, forms: Sequence[str] | None = None, duplicates: str = "last") -> Dataset:
    """All timings in a file, or in a directory's datasets; what else lies there is passed over."""
    for form in forms or ():
        validation.one_of("train", "file-extensions", form.lstrip(".").lower(), FORMS)
    if not path.is_dir():
        return read_dataset(path)
    files = shards(path, forms or FORMS)
    kept = [file for file in files if may_be_dataset(file)]
    for file in sorted(set(files) - set(kept)):
        note(f"{file}: passed over, it is no dataset")
    if not kept:
        raise EmptySelectionError(f"{path}: got no dataset among its JSON files; expected one")
    with naming_file(path):
        return Dataset.merge([read_dataset(file) for file in kept], duplicates)


def may_be_dataset(file: Path) -> bool:
    """Whether a data file is a dataset, damaged or not: a JSON file may be something else of ours
    that lies beside one, such as a model's card, a table, a solution or an analysis."""
    if file.suffix.lower() != ".json":
        return True
    try:
        data = read_json(file)
    except DiodeError:
        return True  # damaged: reading it says how
    if isinstance(data, dict) and "format" not in data:
        return "hardware" in data and isinstance(data["hardware"], dict)
    try:
        check_header(data, "dataset", 1 << 30)
    except InvalidValueError:
        return False
    return True
