"""Whether a model knows how wrong it is, and what follows from it; on problems it has never seen.

Three things: predicted regret against the regret that was measured (reliability), regret against
how many kernels were benchmarked (the curve that stopping by expected regret gives, beside the one
of a fixed number), and how often the one kernel chosen without a benchmark is slower than ATen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.model.expectation import chance_slower, expected_regrets
from torch_diode.model.feature_table import FeatureTable
from torch_diode.model.problem_arrays import Floats

Rows = npt.NDArray[np.int64]

TOLERANCES = (0.05, 0.02, 0.01, 0.005, 0.003, 0.002, 0.001, 0.0005)
FIXED = (1, 2, 3, 5, 8, 10, 15)
CHANCES = (1.0, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
_LOOKED_AT = 32
_MOST = 15
_FEW = 5
_SLOWER = 1.05


@dataclass(frozen=True, eq=False)
class Decision:
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


def decisions(table: FeatureTable, log_ratio: Floats, sigma: Floats) -> Iterator[Decision]:
    """The decisions a table's problems ask for."""
    order = np.lexsort((log_ratio, table.group))
    for rows in np.split(order, np.flatnonzero(np.diff(table.group[order])) + 1):
        place = np.flatnonzero(table.is_aten[rows])
        if len(place) and place[0] > 1:
            rows = np.concatenate([rows[:1], rows[place[:1]], np.delete(rows, place[0])[1:]])
            place = np.ones(1, np.int64)
        yield Decision(
            table.time_us[rows].astype(np.float64),
            log_ratio[rows].astype(np.float64),
            sigma[rows].astype(np.float64),
            table.noise[rows].astype(np.float64),
            int(place[0]) if len(place) else None,
        )


def reliability(found: Sequence[Decision], k: int = 1, bins: int = 8) -> list[dict[str, float]]:
    """Problems by the regret predicted for benchmarking `k`, and the regret that was measured.

    Measured regret has noise in it; so has the prediction here, to be comparable."""
    predicted, actual = np.array([(d.expected(k), d.regret(k)) for d in found]).T
    order = np.argsort(predicted)
    return [
        {
            "predicted": round(float(np.exp(predicted[part].mean())), 5),
            "measured": round(float(np.exp(actual[part].mean())), 5),
            "problems": len(part),
        }
        for part in np.array_split(order, bins)
        if len(part)
    ]


def benchmark_curve(found: Sequence[Decision]) -> list[dict[str, Any]]:
    """Regret against the mean number benchmarked: by expected regret, and for a fixed number."""
    expected = [expected_regrets(d.predicted[:_LOOKED_AT], d.sigma[:_LOOKED_AT]) for d in found]
    rows: list[dict[str, Any]] = []
    for tolerance in TOLERANCES:
        counts = [min(max(int(np.argmax(e <= tolerance)) + 1, 2), _MOST) for e in expected]
        rows.append({"tolerance": tolerance, **_scored(found, counts)})
    rows += [{"k": k, **_scored(found, [k] * len(found))} for k in FIXED]
    return rows


def single_curve(found: Sequence[Decision]) -> list[dict[str, float]]:
    """One kernel and no benchmark: regret, and how often it is slower than ATen by a twentieth,
    for each chance of being slower that is put up with before ATen is taken instead."""
    both = [d for d in found if d.aten is not None]
    rows = []
    for most in CHANCES:
        times, slower = [], []
        for d in both:
            assert d.aten is not None
            pick = 0
            if d.aten != 0:
                gain = float(d.predicted[d.aten] - d.predicted[0])
                if chance_slower(gain, float(d.sigma[0]), float(d.sigma[d.aten])) >= most:
                    pick = d.aten
            times.append(np.log(d.time[pick] / d.time.min()))
            slower.append(d.time[pick] > _SLOWER * d.time[d.aten])
        rows.append(
            {
                "chance": most,
                "regret": round(float(np.exp(np.mean(times))), 5),
                "p99": round(float(np.exp(np.percentile(times, 99))), 4),
                "slower_than_aten": round(float(np.mean(slower)), 5),
            }
        )
    return rows


def _scored(found: Sequence[Decision], counts: Sequence[int]) -> dict[str, float]:
    regrets = [d.regret(k) for d, k in zip(found, counts, strict=True)]
    return {
        "benchmarked": round(float(np.mean(counts)), 3),
        "regret": round(float(np.exp(np.mean(regrets))), 5),
        "p99": round(float(np.exp(np.percentile(regrets, 99))), 4),
    }
