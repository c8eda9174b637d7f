"""The regret a model expects of a decision beside the regret that was measured: whether it knows
how wrong it is, on problems it has never seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.features.table import FeatureTable
from torch_diode.model.serving.expected_regret import expected_regrets

_LOOKED_AT = 32
_FEW = 5


@dataclass(frozen=True, eq=False)
class CalibrationPoint:
    """A problem's rows in the order they would be benchmarked, ATen second at the latest."""

    time: npt.NDArray[np.float64]
    predicted: npt.NDArray[np.float64]
    """Log times, as the model has them."""
    sigma: npt.NDArray[np.float64]
    noise: npt.NDArray[np.float64]
    aten: int | None
    """Where ATen stands in it."""

    def is_clear(self, noise: float) -> bool:
        """Whether there is a choice and the first few of it were measured to within this."""
        return len(self.time) > _FEW and float(self.noise[:_FEW].mean()) < noise

    def regret(self, k: int) -> float:
        """The log regret of benchmarking the first `k`, as measured."""
        return float(np.log(self.time[:k].min() / self.time.min()))

    def expected(self, k: int, shrink: float = 1.0) -> float:
        """The log regret to expect of that, noise of the measurement included, with the
        deviations of all but ATen shrunk."""
        factor = np.full(len(self.sigma), shrink)
        if self.aten is not None:
            factor[self.aten] = 1
        doubt = np.hypot(factor * self.sigma, self.noise)[:_LOOKED_AT]
        expected = expected_regrets(self.predicted[:_LOOKED_AT], doubt)
        return float(expected[min(k, len(expected)) - 1])


def decisions(table: FeatureTable, log_ratio: Floats, sigma: Floats) -> Iterator[CalibrationPoint]:
    """The decisions a table's problems ask for."""
    order = np.lexsort((log_ratio, table.group))
    for rows in np.split(order, np.flatnonzero(np.diff(table.group[order])) + 1):
        place = np.flatnonzero(table.is_aten[rows])
        if len(place) and place[0] > 1:
            rows = np.concatenate([rows[:1], rows[place[:1]], np.delete(rows, place[0])[1:]])
            place = np.ones(1, np.int64)
        yield CalibrationPoint(
            table.time_us[rows].astype(np.float64),
            log_ratio[rows].astype(np.float64),
            sigma[rows].astype(np.float64),
            table.noise[rows].astype(np.float64),
            int(place[0]) if len(place) else None,
        )
