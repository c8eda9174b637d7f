"""Validation sets: a collection that shares no problem with training data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.collection.shape_sampling import Sizes, sizes_of
from torch_diode.files.datasets import read_dataset, shards
from torch_diode.files.file_errors import naming_file
from torch_diode.toolkit.collecting.collect import (
    CollectionResult,
    CollectOptions,
    ProblemList,
    select_problems,
)
from torch_diode.toolkit.datasets import may_be_dataset, read_all
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError, EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape

_COMMAND = "create-validation"
_COLUMNS = ["op", "B", "M", "N", "K"]
_MOST = 1000
"""Folders and files that are searched for training data at most, where none is named."""


def create_validation(
    output: str | os.PathLike[str],
    problems: ShapeSampling | ProblemList,
    options: CollectOptions | None = None,
    *,
    exclude: Sequence[str | os.PathLike[str]] = (),
    progress: ProgressCallback = log_progress,
) -> CollectionResult:
    """Collect a dataset of problems whose sizes no training data has.

    `exclude` names the training data. Without it, every dataset in the working directory, beside
    the output and beside its folder is excluded, and those in the folders there. No seed draws the
    problems that `collect` draws with it.
    """
    chosen = problems if isinstance(problems, ShapeSampling) else select_problems(problems)
    from torch_diode.toolkit.collecting.run import CollectionRun

    with CollectionRun(output, options or CollectOptions(), progress) as run:
        taken = taken_sizes([Path(path) for path in exclude], run.file, progress)
        if isinstance(chosen, ShapeSampling):
            sampling = chosen.with_dtypes(run.hardware)
            # A stream of its own: with the seed of training it would draw the same problems.
            drawn = sampling.problems(run.hardware, f"validation {run.options.seed}", taken)
            return run.collect(_COMMAND, drawn, sampling.settings())
        return run.collect(_COMMAND, _without(chosen, taken, progress), {})


def taken_sizes(exclude: Sequence[Path], output: Path, progress: ProgressCallback) -> set[Sizes]:
    """The sizes excluded from validation: of the datasets named, or else of those nearby."""
    taken: set[Sizes] = set()
    if exclude:
        for path in exclude:
            taken |= _compared(path, read_all(path, progress=progress), progress)
        return taken
    compared = False
    for path in nearby_datasets(output, progress):
        try:
            dataset = read_dataset(path)
        except DiodeError as fault:
            _say(progress, f"not compared with {_shown(path)}: {fault}")
            continue
        taken |= _compared(path, dataset, progress)
        compared = True
    if not compared:
        _say(
            progress,
            "compared with nothing: no other dataset was found; name training data with --exclude",
        )
    return taken


def _say(progress: ProgressCallback, text: str) -> None:
    progress(Progress(message=text))


def _compared(path: Path, dataset: Dataset, progress: ProgressCallback) -> set[Sizes]:
    _say(
        progress,
        f"compared with {len(dataset.problems):,} problems of {_shown(path)}: sizes excluded",
    )
    return _sizes_in(dataset)


def _shown(path: Path) -> Path:
    here = _working_directory()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _working_directory() -> Path:
    with naming_file("the working directory"):
        return Path.cwd()


def nearby_datasets(output: Path, progress: ProgressCallback) -> list[Path]:
    """The dataset files, damaged ones too, in the folders where training data usually is."""
    own = output.resolve()
    folders = _folders(own)
    files = [file for folder in folders[:_MOST] for file in _data_files(folder) if file != own]
    for kind, paths in (("folders", folders), ("files", files)):
        if len(paths) > _MOST:
            more = len(paths) - _MOST
            _say(
                progress,
                f"not looked into: {more:,} more {kind}; name training data with --exclude",
            )
    return [file for file in files[:_MOST] if may_be_dataset(file)]


def _folders(output: Path) -> list[Path]:
    """The output's folder, the working directory and, if they differ, the output folder's parent;
    and the folders in each: one may be a dataset, or the parts of an unfinished collection."""
    here, beside = _working_directory(), output.parent
    roots = (beside, here) if beside == here else (beside, here, beside.parent)
    folders: dict[Path, None] = {}
    for root in roots:
        folders.update(dict.fromkeys([root, *_folders_in(root)]))
    parts = output.with_name(f"{output.name}.parts")
    return [folder for folder in folders if folder not in (output, parts)]


def _folders_in(folder: Path) -> list[Path]:
    """The folders in a folder; none where it cannot be read, which reading its files reports."""
    try:
        return sorted(
            path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
        )
    except OSError:
        return []


def _data_files(folder: Path) -> list[Path]:
    """A folder's data files; the folder itself where it cannot be read, since reading it as a
    dataset reports why."""
    try:
        return shards(folder) if folder.is_dir() else []
    except EmptySelectionError:
        return []
    except FileFaultError:
        return [folder]


def _sizes_in(dataset: Dataset) -> set[Sizes]:
    columns = dataset.table.select(_COLUMNS)
    columns = columns.set_column(0, "op", columns.column("op").cast(pa.string()))
    rows = columns.group_by(_COLUMNS).aggregate([]).to_pylist()
    return {(row["op"], row["B"], row["M"], row["N"], row["K"]) for row in rows}


def _without(
    problems: Iterable[MMShape], taken: set[Sizes], progress: ProgressCallback
) -> list[MMShape]:
    """The problems whose sizes are not taken; raises where there are none."""
    everything = list(problems)
    fresh = [problem for problem in everything if sizes_of(problem) not in taken]
    if not fresh:
        raise EmptySelectionError(
            f"validation: got {len(everything)} problems, all of them in training data; expected "
            "some that are not; choose another shape set or name what to --exclude"
        )
    if len(fresh) < len(everything):
        _say(
            progress, f"{len(everything) - len(fresh):,} problems left out: training data has them"
        )
    return fresh
