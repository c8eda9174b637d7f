"""Reading the part of a dataset a command was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch_diode.hardware import normalise
from torch_diode.toolkit.datasets import read_all
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError


def selected(
    paths: Sequence[Path], hardware: str | None, ops: Sequence[str], duplicates: str = "last"
) -> Dataset:
    """The timings of these files on this hardware and of these operations; never none."""
    dataset = Dataset.merge([read_all(p, duplicates=duplicates) for p in paths], duplicates)
    wanted: dict[str, str | Sequence[str]] = {}
    if hardware:
        wanted["hardware"] = normalise(hardware)
    if ops:
        wanted["op"] = ops
    chosen = dataset.filter(**wanted) if wanted else dataset
    if not len(chosen):
        texts = {n: v if isinstance(v, str) else ", ".join(v) for n, v in wanted.items()}
        asked = " and ".join(f"{name} {text}" for name, text in texts.items()) or "anything"
        have = ", ".join(dataset.texts("hardware")) or "nothing"
        found = ", ".join(str(path) for path in paths)
        raise EmptySelectionError(
            f"{found}: got no timings of {asked}; the data is of {have}"
            + (f", operations {', '.join(dataset.texts('op'))}" if len(dataset) else "")
        )
    return chosen
