"""The calls of the vendor library in a table, as its heads take them: ATen's, and splits of K."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.features.table import FeatureTable


@dataclass(frozen=True, eq=False)
class Calls:
    """Library calls that were timed."""

    rows: npt.NDArray[np.int64]
    """Where they stand in the table."""
    problem: Tensor
    call: Tensor
    target: Tensor
    noise: Tensor
    alone: Tensor
    """1 where nothing else of the problem was timed: then it was in a campaign of library calls,
    on a chip that does nothing but such calls, and took a few percent longer."""

    def __len__(self) -> int:
        return len(self.target)


def aten_calls(table: FeatureTable, device: str = "cpu") -> Calls:
    """The rows of ATen."""
    rows = np.flatnonzero(table.is_aten)
    return _calls(table, rows, table.vendor[table.group[rows]], device)


def split_calls(table: FeatureTable, device: str = "cpu") -> Calls:
    """The rows that are splits of K."""
    rows = np.flatnonzero(table.split >= 0)
    return _calls(table, rows, table.splits[table.split[rows]], device)


def _calls(table: FeatureTable, rows: npt.NDArray[np.int64], call: Floats, device: str) -> Calls:
    group = table.group[rows]
    alone = np.bincount(table.group, minlength=len(table.problem))[group] == 1
    arrays = (
        table.problem[group],
        call,
        table.target[rows],
        table.noise[rows],
        alone.astype(np.float32),
    )
    return Calls(rows, *(torch.from_numpy(array).to(device) for array in arrays))
