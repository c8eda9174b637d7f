"""The timings a model is trained on or held against: read, of one chip, and measured in one way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from torch_diode.cli.console.output import note
from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.hardware import detect, known, known_names, normalise
from torch_diode.toolkit.datasets import read_all
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import OPS

_METHODS = ("sweep", "feedback-clean", "feedback")
"""Which way of measuring is kept where a problem was measured in several: times of autotuning
have the launch in them and cannot be compared with clean ones."""


def read_timings(
    path: Path, forms: Sequence[str] | None, hardware: str | None, ops: Sequence[str]
) -> Dataset:
    """The timings of one chip and of these operations, in a file or a directory; never none."""
    return choose(path, read_all(path, forms), hardware, ops)


def choose(path: Path, dataset: Dataset, hardware: str | None, ops: Sequence[str]) -> Dataset:
    """The part of what was read from a path that is of one chip and of these operations."""
    for op in ops:
        validation.one_of("operations", "op-name", op, OPS)
    wanted: dict[str, str | Sequence[str]] = {}
    if hardware:
        wanted["hardware"] = normalise(hardware)
    if ops:
        wanted["op"] = ops
    chosen = dataset.filter(**wanted) if wanted else dataset
    if not len(chosen):
        raise EmptySelectionError(_nothing(path, dataset, wanted))
    names = chosen.texts("hardware")
    if len(names) > 1:
        raise HardwareMismatchError(
            f"{path}: got timings of {', '.join(names)}; expected one chip's; "
            "choose with --hardware-name"
        )
    return _one_method(chosen)


def _nothing(path: Path, dataset: Dataset, wanted: Mapping[str, str | Sequence[str]]) -> str:
    if not len(dataset):
        return f"{path}: got no timings; expected some; collect first"
    texts = [v if isinstance(v, str) else " or ".join(v) for v in wanted.values()]
    ops, hardware = (", ".join(dataset.texts(name)) for name in ("op", "hardware"))
    return f"{path}: got no timings of {' and '.join(texts)}; it has {ops} of {hardware}"


def chip_of(dataset: Dataset, device: str | None = None) -> Hardware:
    """The chip a dataset was measured on, with its properties."""
    (name,) = dataset.texts("hardware")
    if name in known_names():
        return known(name)
    here = run_in_subprocess(detect, device)
    if here.name == name:
        return here
    raise HardwareMismatchError(
        f"hardware: got timings of {name}, whose properties are not known here; expected one of "
        f"{', '.join(known_names())}; run this on a machine that has the chip"
    )


def _one_method(dataset: Dataset) -> Dataset:
    """For each problem the timings of its best way of measuring alone."""
    codes, names = dataset.codes("method")
    if len(dataset.texts("method")) < 2:
        return dataset
    order = [*_METHODS, *sorted(set(names) - set(_METHODS))]
    worth = np.array([order.index(name) for name in names])[codes]
    best = np.full(len(dataset.problems), len(order))
    np.minimum.at(best, dataset.problems.ids, worth)
    keep = worth == best[dataset.problems.ids]
    left = dataset.problems.ids[~keep]
    if not len(left):
        return dataset
    kept = " or ".join(order[place] for place in np.unique(best[left]))
    note(f"{len(left):,} timings left out: their problems were also measured by {kept}")
    return dataset.take(keep)
