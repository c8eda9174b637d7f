"""Datasets: read a file or directory, select a part of it, convert, summarize."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_diode.files.atomic import refuse_existing
from torch_diode.files.autoheuristic import MATMUL, decision_of
from torch_diode.files.datasets import (
    FORMS,
    READABLE,
    form_of,
    is_log,
    read_dataset,
    shards,
    write_dataset,
)
from torch_diode.files.file_errors import naming_file
from torch_diode.files.header import check_header
from torch_diode.files.json import read_json
from torch_diode.hardware import detect, known, known_names, normalise
from torch_diode.toolkit import dataset_summary
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import (
    DiodeError,
    EmptySelectionError,
    FileFaultError,
    HardwareMismatchError,
    InvalidValueError,
)
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import OPS

if TYPE_CHECKING:
    from torch_diode.types.attention.dataset import AttentionDataset

DatasetSource = Dataset | str | os.PathLike[str]
"""A dataset, its file, or a directory of files that make up one dataset."""

_SAID = 10
"""Files of a directory that are named as read."""
_METHODS = ("sweep", "feedback-clean", "feedback")
"""Measuring methods, most accurate first: times of autotuning include the launch and cannot be
compared with clean ones."""


def read_all(
    source: DatasetSource,
    forms: Sequence[str] | None = None,
    duplicates: str = "last",
    progress: ProgressCallback = log_progress,
) -> Dataset:
    """Read all timings of a file, or of the datasets in a directory and its folders; other JSON
    files are skipped, and logs of other decisions."""
    for form in forms or ():
        validation.one_of("train", "file-extensions", form.lstrip(".").lower(), READABLE)
    if isinstance(source, Dataset):
        return source
    path = Path(source)
    with naming_file(path):
        is_directory = path.is_dir()
    if not is_directory:
        return read_dataset(path)
    files = shards(path, forms or READABLE)
    datasets = [file for file in files if may_be_dataset(file)]
    for file in sorted(set(files) - set(datasets)):
        progress(Progress(message=f"{file}: skipped, not a dataset"))
    if not datasets:
        raise EmptySelectionError(f"{path}: got no dataset among its files; expected one")
    names = ", ".join(str(file.relative_to(path)) for file in datasets[:_SAID])
    more = f" and {len(datasets) - _SAID:,} more" if len(datasets) > _SAID else ""
    progress(Progress(message=f"{path}: read {names}{more}"))
    with naming_file(path):
        return Dataset.merge([read_dataset(file) for file in datasets], duplicates)


def may_be_dataset(file: Path) -> bool:
    """True unless a JSON file is another file of torch-diode, such as a model's card, a table, a
    solution or an analysis, and a log one of another decision; a damaged file may be a dataset."""
    if is_log(file):
        return decision_of(file) == MATMUL
    if file.suffix.lower() != ".json":
        return True
    try:
        data = read_json(file)
    except DiodeError:
        return True  # damaged: reading it reports the damage
    if isinstance(data, dict) and "format" not in data:
        return "hardware" in data and isinstance(data["hardware"], dict)
    try:
        check_header(data, "dataset", 1 << 30)
    except InvalidValueError:
        return False
    return True


def select_timings(
    dataset: Dataset, hardware: str | None = None, ops: Sequence[str] = (), name: str = "dataset"
) -> Dataset:
    """The timings of one hardware and of these operations, all where none is given.

    Raises `EmptySelectionError` where there are none; `name` is the dataset's in the message.
    """
    for op in ops:
        validation.one_of("operations", "op-name", op, OPS)
    wanted: dict[str, str | Sequence[str]] = {}
    if hardware:
        wanted["hardware"] = normalise(hardware)
    if ops:
        wanted["op"] = ops
    selection = dataset.filter(**wanted) if wanted else dataset
    if not len(selection):
        raise EmptySelectionError(_nothing_selected(name, dataset, wanted))
    return selection


def _nothing_selected(
    name: str, dataset: Dataset, wanted: Mapping[str, str | Sequence[str]]
) -> str:
    if not len(dataset):
        return f"{name}: got no timings; expected some; collect first"
    texts = [v if isinstance(v, str) else " or ".join(v) for v in wanted.values()]
    ops, hardware = (", ".join(dataset.texts(column)) for column in ("op", "hardware"))
    return f"{name}: got no timings of {' and '.join(texts)}; it has {ops} of {hardware}"


def select_comparable(
    dataset: Dataset,
    hardware: str | None = None,
    ops: Sequence[str] = (),
    name: str = "dataset",
    progress: ProgressCallback = log_progress,
) -> Dataset:
    """A selection to train on or to validate with: one hardware, one method for each problem."""
    selection = select_timings(dataset, hardware, ops, name)
    names = selection.texts("hardware")
    if len(names) > 1:
        raise HardwareMismatchError(
            f"{name}: got timings of {', '.join(names)}; expected one chip's; "
            "choose with --hardware-name"
        )
    return _best_method(selection, progress)


def _best_method(dataset: Dataset, progress: ProgressCallback) -> Dataset:
    """For each problem the timings of its most accurate method alone."""
    codes, names = dataset.codes("method")
    if len(dataset.texts("method")) < 2:
        return dataset
    order = [*_METHODS, *sorted(set(names) - set(_METHODS))]
    rank = np.array([order.index(name) for name in names])[codes]
    best = np.full(len(dataset.problems), len(order))
    np.minimum.at(best, dataset.problems.ids, rank)
    keep = rank == best[dataset.problems.ids]
    dropped = dataset.problems.ids[~keep]
    if not len(dropped):
        return dataset
    methods = " or ".join(order[place] for place in np.unique(best[dropped]))
    text = f"{len(dropped):,} timings left out: their problems were also measured by {methods}"
    progress(Progress(message=text))
    return dataset.take(keep)


def hardware_of(dataset: Dataset, device: str | None = None) -> Hardware:
    """The chip a dataset was measured on, with its properties; without threads, which each problem
    has its own number of."""
    (name,) = dataset.texts("hardware")
    if name in known_names():
        return known(name)
    from torch_diode.collection.workers.fork_safety import run_in_subprocess

    of_cpu = bool(dataset.values("threads").any())
    here = detect("cpu") if of_cpu else run_in_subprocess(detect, device)
    if here.name == name:
        return replace(here, threads=0)
    raise HardwareMismatchError(
        f"hardware: got timings of {name}, whose properties are not known here; expected one of "
        f"{', '.join(known_names())}; run this on a machine that has the chip"
    )


def source_name(source: DatasetSource) -> str:
    """The name of a dataset in messages and results."""
    return "dataset" if isinstance(source, Dataset) else os.fspath(source)


def convert(
    inputs: Iterable[DatasetSource],
    output: Path,
    *,
    form: str | None = None,
    hardware: str | None = None,
    ops: Sequence[str] = (),
    duplicates: str = "refuse",
    overwrite: bool = False,
    collected: str | None = None,
    progress: ProgressCallback = log_progress,
) -> Dataset | AttentionDataset:
    """Merge datasets, select a part and write it; the result is what was written.

    The output's suffix names its form, `form` does where it has no such suffix. `duplicates` says
    what to do with a timing that occurs twice: refuse it, or keep the first or the last.
    `collected` is the date of the timings, where the inputs do not know it. Timings of attention
    are written as Parquet.
    """
    form = _output_form(output, form)
    refuse_existing(output, overwrite)
    inputs = list(inputs)
    date = None if collected is None else _date(collected)
    if any(map(_holds_attention, inputs)):
        from torch_diode.files.attention.datasets import convert_attention

        if ops:
            raise InvalidValueError("convert: got operations for timings of attention; leave out")
        return convert_attention(inputs, output, form, hardware, date, overwrite)
    merged = Dataset.merge(
        [read_all(path, duplicates=duplicates, progress=progress) for path in inputs], duplicates
    )
    if date is not None:
        merged = Dataset(merged.table, {**merged.provenance, "collected": (date,)})
    selection = select_timings(merged, hardware, ops, ", ".join(map(source_name, inputs)))
    write_dataset(selection, output, form, overwrite)
    return selection


def _holds_attention(source: DatasetSource) -> bool:
    from torch_diode.files.attention.datasets import holds_attention

    return holds_attention(source)


def _date(text: str) -> str:
    if not re.fullmatch(r"\d{4}(-\d{2}){0,2}", text):
        raise InvalidValueError(
            f"convert: got {text!r:.40} as the date of the timings; expected one such as 2024-08-15"
        )
    return text


def _output_form(output: Path, given: str | None) -> str:
    if given is None or output.suffix.lower().lstrip(".") in FORMS:
        named = form_of(output)
        if given not in (None, named):
            raise FileFaultError(
                f"{output}: got --format {given} and the ending .{named}; expected both the same"
            )
        return named
    return given


def convert_json_to_msgpack(
    inputs: Sequence[Path],
    output_dir: Path | None = None,
    *,
    overwrite: bool = False,
    progress: ProgressCallback = log_progress,
) -> list[Path]:
    """Convert JSON datasets file by file, each beside its input or in `output_dir`."""
    outputs = [(output_dir or path.parent) / f"{path.stem}.msgpack" for path in inputs]
    if len(set(outputs)) < len(outputs):
        twice = next(output for output in outputs if outputs.count(output) > 1)
        raise FileFaultError(f"{twice}: got two inputs for this output; convert them separately")
    for path, output in zip(inputs, outputs, strict=True):
        if form_of(path) != "json":
            raise FileFaultError(f"{path}: got no JSON file; expected the ending .json")
        refuse_existing(output, overwrite)
    for number, (path, output) in enumerate(zip(inputs, outputs, strict=True), 1):
        dataset = read_dataset(path)
        write_dataset(dataset, output, overwrite=overwrite)
        progress(Progress(message=f"{output}: {len(dataset):,} timings"))
        progress(Progress("Converting", number, len(outputs), "files"))
    return outputs


@dataclass(frozen=True)
class DatasetStatistics:
    """Contents of a dataset: its operations, and its problems with their fastest configs."""

    dataset: Dataset
    operations: list[dataset_summary.OperationSummary]
    problems: list[dataset_summary.ProblemSummary]
    """At most the number given as `limit`."""

    def to_dict(self) -> dict[str, Any]:
        """The statistics as JSON has them."""
        return {
            "timings": len(self.dataset),
            "digest": self.dataset.digest,
            "operations": [vars(item) for item in self.operations],
            "problems": [
                {
                    "hardware": item.hardware,
                    "problem": item.example.problem.to_dict(),
                    "configs": item.configs,
                    "failed": item.failed,
                    "fastest": item.fastest.candidate.to_dict() if item.fastest else None,
                    "time_us": item.fastest.time_us if item.fastest else None,
                }
                for item in self.problems
            ],
        }


def stats(
    dataset: DatasetSource,
    hardware: str | None = None,
    ops: Sequence[str] = (),
    limit: int | None = None,
    progress: ProgressCallback = log_progress,
) -> DatasetStatistics:
    """Statistics of a dataset or a part of it, with at most `limit` problems listed."""
    whole = read_all(dataset, progress=progress)
    selection = select_timings(whole, hardware, ops, source_name(dataset))
    return DatasetStatistics(
        selection, dataset_summary.operations(selection), dataset_summary.problems(selection, limit)
    )


def refuse_same(output: Path, *inputs: Path) -> None:
    """Raise where an output is one of the inputs."""
    for path in inputs:
        with naming_file(output):
            same = output.exists() and path.exists() and output.samefile(path)
        if same:
            raise FileFaultError(f"{output}: got an input as the output; choose another name")
