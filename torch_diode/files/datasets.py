"""Datasets on disk: a file of any form, or a directory of such files read as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from torch_diode.files import dataset_tree, json, msgpack
from torch_diode.files.file_errors import existing, naming_file
from torch_diode.files.parquet import read_parquet, write_parquet
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, FileFaultError

_TREE_DEPTH = 6
FORMS = ("parquet", "msgpack", "json")


def form_of(path: str | os.PathLike[str]) -> str:
    """The form a file name's ending names."""
    form = Path(path).suffix.lower().lstrip(".")
    if form not in FORMS:
        endings = ", ".join(f".{name}" for name in FORMS)
        raise FileFaultError(f"{path}: got the ending {form!r}; expected one of {endings}")
    return form


def shards(path: str | os.PathLike[str], forms: Sequence[str] = FORMS) -> list[Path]:
    """The files a path stands for: itself, or a directory's data files in order of their names.

    Hidden files are passed over: they are what a killed writer left behind.
    """
    found = existing(path)
    if not found.is_dir():
        return [found]
    endings = {f".{form.lstrip('.').lower()}" for form in forms}
    with naming_file(found):
        files = sorted(
            file
            for file in found.iterdir()
            if file.suffix.lower() in endings and not file.name.startswith(".")
        )
    if not files:
        raise EmptySelectionError(
            f"{path}: got no dataset file; expected files ending in {', '.join(sorted(endings))}"
        )
    return files


def read_dataset(
    path: str | os.PathLike[str],
    forms: Sequence[str] = FORMS,
    duplicates: str = "refuse",
    on_shard: Callable[[Path], None] | None = None,
) -> Dataset:
    """The dataset in a file or a directory of shards; a faulty shard fails the whole."""
    files = shards(path, forms)
    parts = []
    for file in files:
        parts.append(_read_file(file))
        if on_shard is not None:
            on_shard(file)
    if len(parts) == 1:
        return parts[0]
    with naming_file(path):
        return Dataset.merge(parts, duplicates)


def _read_file(path: Path) -> Dataset:
    form = form_of(path)
    if form == "parquet":
        return read_parquet(path)
    data = json.read_json(path) if form == "json" else msgpack.read_msgpack(path)
    with naming_file(path):
        return dataset_tree.from_tree(data)


def write_dataset(dataset: Dataset, path: str | os.PathLike[str], form: str | None = None) -> None:
    """A dataset as one file, whole or not at all; the form is the ending's unless given."""
    form = form or form_of(path)
    if form == "parquet":
        write_parquet(path, dataset)
    elif form == "msgpack":
        msgpack.write_msgpack(path, dataset_tree.to_tree(dataset))
    elif form == "json":
        json.write_json(path, dataset_tree.to_tree(dataset), _TREE_DEPTH)
    else:
        raise FileFaultError(f"{path}: got form {form!r}; expected one of {', '.join(FORMS)}")
