"""Agreement of the sweep's kernels with those Inductor makes for fixed sizes.

A sweep compiles a config once, with sizes as arguments; a compile makes a kernel for fixed sizes. A
model trained on the first is as good as the two agree, in the order of the candidates first of all,
and in their times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.model.evaluation.regret import problem_slices
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.roofline import roofline_us
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

LEAST_CONFIGS = 5
"""Fewer configs give no meaningful order."""
SIZES = ("tiny", "small", "medium", "large")

Times = Mapping[Candidate, float]


@dataclass(frozen=True)
class Agreement:
    """One problem: `bias` and `aten` are geometric means of static over sweep time, of Triton
    configs and of the vendor's kernel, which is the same in both and shows the noise."""

    problem: MMShape
    configs: int
    rank_correlation: float
    bias: float
    aten: float | None
    regret: float
    """Static time of the sweep's best candidate, over the best static time."""


@dataclass(frozen=True)
class Fidelity:
    """Summary of the problems of one size class."""

    name: str
    problems: int
    timings: int
    rank_correlation: float
    """Median over problems."""
    rank_correlation_p10: float
    bias: float
    aten: float
    regret: float
    regret_p95: float

    def to_dict(self) -> dict[str, float | int | str]:
        """JSON form."""
        return asdict(self)


def agreements(static: Dataset, sweep: Dataset) -> list[Agreement]:
    """Agreement of every problem with enough Triton configs timed both ways."""
    ours, theirs = _times(static), _times(sweep)
    found = []
    for problem, times in ours.items():
        other = theirs.get(problem, {})
        both = [candidate for candidate in times if candidate in other]
        configs = [candidate for candidate in both if candidate.template != ATEN]
        if len(configs) >= LEAST_CONFIGS:
            found.append(_agreement(problem, times, other, both, configs))
    if not found:
        raise EmptySelectionError(
            f"fidelity: got no problem with {LEAST_CONFIGS} configs timed in both files; expected "
            "one at least; give two files of the same run"
        )
    return found


def by_size(found: Sequence[Agreement], hardware: Hardware) -> list[Fidelity]:
    """Summary of each size class that has problems, and of all."""
    sizes = [size_class(agreement.problem, hardware) for agreement in found]
    rows = [
        _summary(name, [a for a, size in zip(found, sizes, strict=True) if size == name])
        for name in SIZES
        if name in sizes
    ]
    return [*rows, _summary("all", found)]


def size_class(problem: MMShape, hardware: Hardware) -> str:
    """Tiny, small, medium or large, by the problem's roofline."""
    arrays = ProblemArrays.of(problem)
    slices = problem_slices(arrays, roofline_us(arrays, hardware))
    return next(name for name in SIZES if slices[f"size={name}"][0])


def as_table(rows: Iterable[Fidelity]) -> str:
    """Readable table."""
    head = f"{'size':8} {'problems':>8} {'timings':>8} {'rank corr.':>10} {'p10':>6} "
    head += f"{'static/sweep':>12} {'ATen':>6} {'regret':>7} {'p95':>6}"
    lines = [
        f"{r.name:8} {r.problems:8,} {r.timings:8,} {r.rank_correlation:10.3f} "
        f"{r.rank_correlation_p10:6.3f} {r.bias:12.3f} {r.aten:6.3f} {r.regret:7.3f} "
        f"{r.regret_p95:6.3f}"
        for r in rows
    ]
    return "\n".join([head, *lines])


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation with shared ranks for ties; 0 if one side is constant."""
    a, b = _ranks(first), _ranks(second)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale else 0.0


def _ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place], np.float64)


def _times(dataset: Dataset) -> dict[MMShape, dict[Candidate, float]]:
    found: dict[MMShape, dict[Candidate, float]] = {}
    for timing in dataset:
        if timing.time_us is not None:
            found.setdefault(timing.problem, {})[timing.candidate] = timing.time_us
    return found


def _agreement(
    problem: MMShape,
    static: Times,
    sweep: Times,
    both: Sequence[Candidate],
    configs: Sequence[Candidate],
) -> Agreement:
    ratios = {candidate: static[candidate] / sweep[candidate] for candidate in both}
    vendor = [ratios[candidate] for candidate in both if candidate.template == ATEN]
    chosen = min(both, key=sweep.__getitem__)
    return Agreement(
        problem,
        len(configs),
        rank_correlation([static[c] for c in configs], [sweep[c] for c in configs]),
        _geomean([ratios[c] for c in configs]),
        vendor[0] if vendor else None,
        static[chosen] / min(static[c] for c in both),
    )


def _summary(name: str, found: Sequence[Agreement]) -> Fidelity:
    correlations = [a.rank_correlation for a in found]
    regrets = [a.regret for a in found]
    return Fidelity(
        name,
        problems=len(found),
        timings=sum(a.configs + (a.aten is not None) for a in found),
        rank_correlation=float(np.median(correlations)),
        rank_correlation_p10=float(np.percentile(correlations, 10)),
        bias=_geomean([a.bias for a in found]),
        aten=_geomean([a.aten for a in found if a.aten is not None]),
        regret=_geomean(regrets),
        regret_p95=float(np.percentile(regrets, 95)),
    )


def _geomean(values: Sequence[float]) -> float:
    return float(np.exp(np.log(values).mean())) if values else float("nan")
