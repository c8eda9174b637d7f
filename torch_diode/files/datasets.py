"""Datasets on disk: a file of any form, or a directory of such files read as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch_diode.files.file_errors import existing, naming_file
from torch_diode.types.errors import EmptySelectionError, FileFaultError

if TYPE_CHECKING:
    from torch_diode.types.dataset import Dataset

_TREE_DEPTH = 6
FORMS = ("parquet", "msgpack", "json")
LOG = "txt"
"""The form of PyTorch's AutoHeuristic logs, plain or compressed by gzip, which are only read."""
READABLE = (*FORMS, LOG)


def form_of(path: str | os.PathLike[str]) -> str:
    """The form that a file name's ending stands for."""
    form = Path(path).suffix.lower().lstrip(".")
    if form not in FORMS:
        endings = ", ".join(f".{name}" for name in FORMS)
        raise FileFaultError(f"{path}: got the ending {form!r}; expected one of {endings}")
    return form


def is_log(path: Path) -> bool:
    """True if a file's name ends like a log's."""
    return path.name.lower().endswith((f".{LOG}", f".{LOG}.gz"))


def shards(path: str | os.PathLike[str], forms: Sequence[str] = READABLE) -> list[Path]:
    """The files of a path: itself, or the data files of a directory and its folders, sorted.

    Hidden files are skipped: they are what a killed writer left behind. So is text that is no log.
    """
    folder = existing(path)
    if not folder.is_dir():
        return [folder]
    endings = {f".{form.lstrip('.').lower()}" for form in forms}
    with naming_file(folder):
        files = sorted(
            file
            for file in folder.rglob("*")
            if _ending(file) in endings
            and not any(part.startswith(".") for part in file.relative_to(folder).parts)
            and file.is_file()
        )
    files = [file for file in files if not is_log(file) or _has_log(file)]
    if not files:
        raise EmptySelectionError(
            f"{path}: got no dataset file; expected files ending in {', '.join(sorted(endings))}"
        )
    return files


def _ending(path: Path) -> str:
    return f".{LOG}" if is_log(path) else path.suffix.lower()


def _has_log(path: Path) -> bool:
    from torch_diode.files.autoheuristic import decision_of

    return decision_of(path) != ""


def read_dataset(
    path: str | os.PathLike[str], forms: Sequence[str] = READABLE, duplicates: str = "refuse"
) -> Dataset:
    """Read a dataset from a file or a directory of shards; a faulty shard is an error."""
    parts = [_read_file(file) for file in shards(path, forms)]
    if len(parts) == 1:
        return parts[0]
    from torch_diode.types.dataset import Dataset

    with naming_file(path):
        return Dataset.merge(parts, duplicates)


# Each form is imported when a file of it is met, and with it the form's library.


def _read_file(path: Path) -> Dataset:
    if is_log(path):
        from torch_diode.files.autoheuristic import read_autoheuristic

        return read_autoheuristic(path)
    form = form_of(path)
    if form == "parquet":
        from torch_diode.files.parquet import read_parquet

        return read_parquet(path)
    from torch_diode.files.dataset_tree import from_tree

    if form == "json":
        from torch_diode.files.json import read_json as read
    else:
        from torch_diode.files.msgpack import read_msgpack as read
    dataset: Dataset = read(path, from_tree)
    return dataset


def write_dataset(
    dataset: Dataset, path: str | os.PathLike[str], form: str | None = None, overwrite: bool = True
) -> None:
    """Write a dataset as one file atomically; the form is the ending's unless given."""
    form = form or form_of(path)
    if form not in FORMS:
        raise FileFaultError(f"{path}: got form {form!r}; expected one of {', '.join(FORMS)}")
    if form == "parquet":
        from torch_diode.files.parquet import write_parquet

        write_parquet(path, dataset, overwrite)
        return
    from torch_diode.files.dataset_tree import to_tree

    if form == "json":
        from torch_diode.files.json import write_json

        write_json(path, to_tree(dataset), _TREE_DEPTH, overwrite)
    else:
        from torch_diode.files.msgpack import write_msgpack

        write_msgpack(path, to_tree(dataset), overwrite)
