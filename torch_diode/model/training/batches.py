"""Rows of a feature table as tensors: batches of whole problems for the network of configs, since a
ranking loss needs all candidates of a problem together, and library calls for the vendor heads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats
    from torch_diode.model.features.table import FeatureTable

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some problems and all their configs; `group` is the problem of each config."""

    problem: Tensor
    config: Tensor
    group: Tensor
    target: Tensor
    log_regret: Tensor
    """log(time / best time of the problem), ATen included."""
    noise: Tensor
    """Standard error of each log time."""
    rows: Ids
    """Positions of the configs in the table."""

    def __len__(self) -> int:
        return len(self.problem)


class ProblemBatches:
    """Configs of a table sorted by problem, to draw batches from; problems without a config are
    left out.

    Of the configs slower than `far` times the best, which are most rows and teach little, a batch
    has only a random share, `far_share`.
    """

    def __init__(
        self, table: FeatureTable, far: float = np.inf, far_share: float = 1.0, device: str = "cpu"
    ) -> None:
        regret = log_regrets(table)
        rows = np.flatnonzero(table.is_config)
        self.rows: Ids = rows[np.argsort(table.group[rows], kind="stable")]
        group = table.group[self.rows]
        heads = np.r_[True, group[1:] != group[:-1]] if len(group) else np.zeros(0, bool)
        self.starts: Ids = np.r_[np.flatnonzero(heads), len(group)].astype(np.int64)
        self.problems: Ids = group[self.starts[:-1]] if len(group) else group
        self._far = regret[self.rows] >= np.log(far)
        self._far_share = far_share
        self._problem = torch.from_numpy(table.problem).to(device)
        self._config = torch.from_numpy(table.config[self.rows]).to(device)
        self._target = torch.from_numpy(table.target[self.rows]).to(device)
        self._regret = torch.from_numpy(regret[self.rows].astype(np.float32)).to(device)
        self._noise = torch.from_numpy(table.noise[self.rows]).to(device)
        self.device = device

    def __len__(self) -> int:
        return len(self.problems)

    def draw(self, size: int, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """Yield all problems once, `size` at a time: shuffled and thinned out with a generator, in
        order and with all configs without."""
        order = rng.permutation(len(self)) if rng is not None else np.arange(len(self))
        for start in range(0, len(order), size):
            yield self._batch(order[start : start + size], rng)

    def _batch(self, chosen: Ids, rng: np.random.Generator | None) -> Batch:
        counts = self.starts[chosen + 1] - self.starts[chosen]
        before = np.cumsum(counts) - counts
        rows = np.repeat(self.starts[chosen] - before, counts) + np.arange(counts.sum())
        group = np.repeat(np.arange(len(chosen)), counts)
        if rng is not None and self._far_share < 1:
            keep = ~self._far[rows] | (rng.random(len(rows)) < self._far_share)
            rows, group = rows[keep], group[keep]
        index = torch.from_numpy(rows).to(self.device)
        return Batch(
            self._problem[torch.from_numpy(self.problems[chosen]).to(self.device)],
            self._config[index],
            torch.from_numpy(group).to(self.device),
            self._target[index],
            self._regret[index],
            self._noise[index],
            self.rows[rows],
        )


@dataclass(frozen=True, eq=False)
class LibraryCalls:
    """Timed calls of the vendor library."""

    rows: Ids
    """Positions in the table."""
    problem: Tensor
    call: Tensor
    target: Tensor
    noise: Tensor
    alone: Tensor
    """1 where nothing else of the problem was timed: such calls come from sweeps of library calls
    only, which keep the chip busier and take a few percent longer."""

    def __len__(self) -> int:
        return len(self.target)


def aten_calls(table: FeatureTable, device: str = "cpu") -> LibraryCalls:
    """Select the rows of ATen."""
    rows = np.flatnonzero(table.is_aten)
    return _calls(table, rows, table.vendor[table.group[rows]], device)


def split_calls(table: FeatureTable, device: str = "cpu") -> LibraryCalls:
    """Select the rows that are splits of K."""
    rows = np.flatnonzero(table.split >= 0)
    return _calls(table, rows, table.splits[table.split[rows]], device)


def _calls(table: FeatureTable, rows: Ids, call: Floats, device: str) -> LibraryCalls:
    group = table.group[rows]
    alone = (~table.has_choice[group]).astype(np.float32)
    arrays = (table.problem[group], call, table.target[rows], table.noise[rows], alone)
    return LibraryCalls(rows, *(torch.from_numpy(array).to(device) for array in arrays))


def log_regrets(table: FeatureTable) -> npt.NDArray[np.float64]:
    """log(time / best time of its problem) of each row."""
    return np.asarray(np.log(table.time_us / table.best_times()[table.group]))
