"""Regret@k, and the error of predicted times.

Regret@k is the best time among the k candidates a model ranks first, over the best time of all, as
a geometric mean over problems. Users feel regret; the error of the times only explains it. All of
it works on arrays with the problem, measured time and predicted time of each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.names import PRECISIONS
from torch_diode.types.problem import LAYOUTS, OPS

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import ProblemArrays

KS = (1, 3, 5, 10, 20)

Ids = npt.NDArray[np.int64]
Times = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]

ONCE = 1.0
"""Noise given to a CPU's time that was measured too few times to tell."""
_DRAWS = 8
_MEDIAN_ERROR = 1.2533
_HALF_RANGE = 0.6745
"""Standard error of a median, and half the interquartile range, both over the deviation of normal
samples."""


@dataclass(frozen=True)
class Score:
    """Regret at one k over some problems."""

    k: int
    problems: int
    geomean: float
    p95: float
    p99: float
    max: float

    def to_dict(self) -> dict[str, float]:
        """Convert to plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class TimeError:
    """Error of predicted times in log space; a `factor` of 1.1 means off by a tenth."""

    rows: int
    mse: float
    rmse: float
    factor: float
    median: float


@dataclass(frozen=True, eq=False)
class RankedTimes:
    """Rows sorted by problem, then by predicted time: `order`, the start of each problem in it, and
    each row's place within its problem."""

    order: Ids
    starts: Ids
    place: Ids

    @classmethod
    def by(cls, group: Ids, predicted: Times) -> RankedTimes:
        """Sort stably: rows of equal predicted time keep their order, so that a constant predictor
        gains nothing from ties."""
        order = np.lexsort((predicted, group))
        ids = group[order]
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else ids
        sizes = np.diff(np.r_[starts, len(ids)])
        return cls(order, starts, np.arange(len(ids)) - np.repeat(starts, sizes))

    def with_choice(self) -> RankedTimes:
        """Keep the problems with more than one row: the others have no regret, and would only
        improve the mean."""
        sizes = np.diff(np.r_[self.starts, len(self.order)])
        keep = np.repeat(sizes > 1, sizes)
        several = sizes[sizes > 1]
        starts = np.cumsum(several) - several
        return RankedTimes(self.order[keep], starts.astype(np.int64), self.place[keep])

    @property
    def first(self) -> Ids:
        """Row ranked first for each problem."""
        return self.order[self.starts]

    def regrets(self, measured: Times, ks: Sequence[int] = KS) -> npt.NDArray[np.float64]:
        """Regrets, one row per problem and one column per k."""
        if not len(self.starts):
            return np.zeros((0, len(ks)))
        times = np.asarray(measured, np.float64)[self.order]
        best = np.minimum.reduceat(times, self.starts)
        columns = [
            np.minimum.reduceat(np.where(self.place < k, times, np.inf), self.starts) / best
            for k in ks
        ]
        return np.stack(columns, axis=1)


def regret_arrays(
    group: Ids, measured: Times, predicted: Times, ks: Sequence[int] = KS
) -> tuple[Ids, npt.NDArray[np.float64]]:
    """Numbers of the problems, and their regrets: one row per problem, one column per k."""
    ranked = RankedTimes.by(group, predicted)
    return group[ranked.first], ranked.regrets(measured, ks)


def scores(values: npt.NDArray[np.float64], ks: Sequence[int] = KS) -> list[Score]:
    """Summarise regrets, one entry per k; empty for no problems."""
    if not len(values):
        return []
    result = []
    for column, k in zip(values.T, ks, strict=True):
        p95, p99 = (float(np.percentile(column, q)) for q in (95, 99))
        geomean = float(np.exp(np.log(column).mean()))
        result.append(Score(k, len(column), geomean, p95, p99, float(column.max())))
    return result


def sliced_scores(
    values: npt.NDArray[np.float64], slices: Mapping[str, Mask], ks: Sequence[int] = KS
) -> dict[str, list[Score]]:
    """Summarise each slice that has any problem; `all` comes first."""
    masks = {name: mask for name, mask in slices.items() if mask.any()}
    return {
        "all": scores(values, ks),
        **{name: scores(values[mask], ks) for name, mask in masks.items()},
    }


def problem_slices(problems: ProblemArrays, roofline_us: Times) -> dict[str, Mask]:
    """Slices of problems: op, precision, layout, size class, and whether rows can be loaded 16
    bytes at a time, fewer, or element by element."""
    p = problems
    ops = {f"op={op}": p.op == number for number, op in enumerate(OPS)}
    precisions = {f"precision={name}": p.precision == n for n, name in enumerate(PRECISIONS)}
    slices: dict[str, Mask] = {**ops, **precisions}
    for op, in_op in ops.items():
        slices |= {f"{op},{name}": in_op & mask for name, mask in precisions.items()}
    for a in (0, 1):
        for b in (0, 1):
            layout = "nt"[a] + "nt"[b]
            slices[f"layout={layout}"] = (p.transpose_a == a) & (p.transpose_b == b)
    slices |= _cpu_slices(p)
    edges = (0.0, 4.0, 8.0, 30.0, np.inf)
    names = ("tiny", "small", "medium", "large")
    for name, low, high in zip(names, edges[:-1], edges[1:], strict=True):
        slices[f"size={name}"] = np.asarray((roofline_us >= low) & (roofline_us < high))
    inner_a = np.where(p.transpose_a > 0, p.low_bits[:, 0], p.low_bits[:, 2])
    inner_b = np.where(p.transpose_b > 0, p.low_bits[:, 2], p.low_bits[:, 1])
    unit = np.minimum(inner_a, inner_b)
    aligned, odd = unit * p.item >= 16, unit == 1
    slices |= {"rows=aligned": aligned, "rows=half aligned": ~(aligned | odd), "rows=odd": odd}
    return slices


def _cpu_slices(p: ProblemArrays) -> dict[str, Mask]:
    """Slices of a CPU's problems: threads; precision, layout and threads together."""
    slices: dict[str, Mask] = {}
    for count in np.unique(p.threads[p.threads > 0]).astype(int).tolist():
        slices[f"threads={count}"] = here = p.threads == count
        for number, name in enumerate(PRECISIONS):
            for layout, letters in enumerate(LAYOUTS):
                among = (p.precision == number) & (2 * p.transpose_a + p.transpose_b == layout)
                slices[f"precision={name},layout={letters},threads={count}"] = here & among
    return slices


def time_error(measured: Times, predicted: Times) -> TimeError:
    """Compute the error of log times."""
    error = np.log(np.asarray(predicted, np.float64) / np.asarray(measured, np.float64))
    mse = float(np.square(error).mean())
    rmse = mse**0.5
    median = float(np.exp(np.median(np.abs(error))))
    return TimeError(len(error), mse, rmse, float(np.exp(rmse)), median)


def standard_errors(
    spread: Times, repeats: npt.NDArray[np.integer], measured: Times
) -> npt.NDArray[np.float64]:
    """Standard error of each measured time, as a fraction, from its samples' half interquartile
    range. With fewer than three samples, the median spread of times of that order is used."""
    half = np.asarray(spread, np.float64).copy()
    bins = np.clip(np.log2(np.maximum(measured, 1e-3)).astype(int), 0, 20)
    repeats = np.maximum(repeats, 1)
    known = np.isfinite(half) & (repeats >= 3)
    overall = float(np.median(half[known])) if known.any() else 0.0
    for number in np.unique(bins):
        here = bins == number
        typical = float(np.median(half[here & known])) if (here & known).any() else overall
        half[here & ~known] = typical
    return np.asarray(_MEDIAN_ERROR * half / _HALF_RANGE / np.sqrt(repeats))


def noise_regrets(
    group: Ids, measured: Times, errors: Times, ks: Sequence[int] = KS
) -> npt.NDArray[np.float64]:
    """Regret that noise alone causes, for each problem with a choice, one column per k.

    Measured times are taken as true and drawn again, each with its own standard error; the ranking
    by the true times is scored on the draws.
    """
    rng = np.random.default_rng(0)
    truth = RankedTimes.by(group, measured).with_choice()
    total = np.zeros((len(truth.starts), len(ks)))
    for _ in range(_DRAWS):
        again = measured * np.exp(errors * rng.standard_normal(len(measured)))
        total += np.log(truth.regrets(again, ks))
    return np.asarray(np.exp(total / _DRAWS))
