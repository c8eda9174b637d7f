"""Batches of whole problems: a ranking loss needs all candidates of a problem together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_diode.model.features.table import FeatureTable

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some problems and all their configs; `group` says which problem a config is of."""

    problem: Tensor
    config: Tensor
    group: Tensor
    target: Tensor
    log_regret: Tensor
    """log(time / best time of the problem), ATen counted."""
    noise: Tensor
    """The standard error of each log time."""
    rows: Ids
    """Where the configs stand in the table."""

    def __len__(self) -> int:
        return len(self.problem)


class ProblemBatches:
    """The configs of a table's problems, sorted by problem, ready to be drawn from; problems with
    no config are left out.

    `far` and `far_share` thin out the hopeless: of the configs that take more than `far` times the
    best, only a share is in a batch, another one each time. They are most of the rows and teach
    little.
    """

    def __init__(
        self,
        table: FeatureTable,
        far: float = np.inf,
        far_share: float = 1.0,
        device: str = "cpu",
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
        """All problems once, `size` at a time, in a random order if there is one to draw from;
        else all of their configs, too."""
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


def log_regrets(table: FeatureTable) -> npt.NDArray[np.float64]:
    """For each row log(time / best time of its problem)."""
    best = np.full(len(table.problem), np.inf)
    np.minimum.at(best, table.group, table.time_us)
    return np.asarray(np.log(table.time_us / best[table.group]))
