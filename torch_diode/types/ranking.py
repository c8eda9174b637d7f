"""A heuristic's answer: the candidates in order, with their predicted times."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

import numpy as np
import numpy.typing as npt

from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.timing import Prediction


@dataclass(frozen=True, eq=False)
class Ranking:
    """Positions of the candidates, best first, and predicted microseconds by position.

    `order` may be partial (a table has a few candidates); `predicted_us` has one value for every
    candidate, NaN where the heuristic predicts no time. `sigma` is the heuristic's estimate of its
    own error by position, as a fraction. `open_sizes`: the times are of kernels that get their
    sizes as arguments, as a sweep's do. `shortlist`: the reason why its first candidates may only
    be benchmarked against plain torch's choice, and none may run unbenchmarked; empty where one
    may. Checked on construction, before it reaches a compile.
    """

    order: npt.NDArray[np.int64]
    predicted_us: npt.NDArray[np.float64]
    source: str
    sigma: npt.NDArray[np.float64] | None = None
    note: str = ""
    open_sizes: bool = False
    shortlist: str = ""

    def __post_init__(self) -> None:
        order, times = self.order, self.predicted_us
        if not len(order):
            raise InvalidValueError(f"{self.source}: got an empty order; return None to abstain")
        least, most = int(np.minimum.reduce(order)), int(np.maximum.reduce(order))
        if least < 0 or most >= len(times):
            raise InvalidValueError(
                f"{self.source}: got positions {least} to {most}; expected 0 to {len(times) - 1}"
            )
        ranked = np.zeros(len(times), bool)
        ranked[order] = True
        count = np.count_nonzero(ranked)
        if count < len(order):
            raise InvalidValueError(f"{self.source}: got a candidate twice in its order")
        named = times if count == len(times) else times[order]
        fastest, slowest = np.minimum.reduce(named), np.maximum.reduce(named)
        if not (0 < fastest <= slowest < np.inf) and not np.isnan(named).all():
            raise InvalidValueError(
                f"{self.source}: got predicted times that are not above zero and finite; "
                "expected microseconds for all ranked candidates, or for none"
            )
        if self.sigma is not None and len(self.sigma) != len(times):
            raise InvalidValueError(
                f"{self.source}: got {len(self.sigma)} error estimates for {len(times)} candidates"
            )

    @classmethod
    def by_time(
        cls,
        predicted_us: npt.NDArray[np.floating],
        source: str,
        sigma: npt.NDArray[np.floating] | None = None,
        candidates: Candidates | None = None,
        note: str = "",
        open_sizes: bool = False,
    ) -> Ranking:
        """All candidates, ordered by predicted time; equal times by template and config where
        `candidates` are given, and otherwise in their input order.

        Times are often equal: configs that differ in a field that the predictor ignores, or that
        fall into one leaf of a tree. Torch's releases list candidates in different orders, and
        the choice must not depend on that.
        """
        times = np.asarray(predicted_us, dtype=np.float64)
        error = None if sigma is None else np.asarray(sigma, dtype=np.float64)
        # The stable sort is slower, and not needed where ties are broken below.
        order = np.argsort(times, kind="stable" if candidates is None else None)
        ordered = times[order]
        if len(ordered) and isnan(ordered[-1]):  # NaN is sorted to the end
            raise InvalidValueError(f"{source}: got a predicted time that is not a number")
        same = ordered[1:] == ordered[:-1]
        if candidates is not None and np.count_nonzero(same):
            tied = np.zeros(len(order), bool)
            tied[1:] |= same
            tied[:-1] |= same
            order[tied] = _by_config(np.sort(order[tied]), candidates, times)
        return cls(order, times, source, error, note, open_sizes)

    def predictions(self, candidates: Candidates, top: int | None = None) -> list[Prediction]:
        """The first `top` as objects, best first."""
        return [self.prediction(candidates, row) for row in self.order[:top].tolist()]

    def prediction(self, candidates: Candidates, row: int) -> Prediction:
        """One candidate as an object."""
        time = float(self.predicted_us[row])
        sigma = None if self.sigma is None else float(self.sigma[row])
        return Prediction(candidates[row], None if isnan(time) else time, sigma, self.source)


def _by_config(
    rows: npt.NDArray[np.int64], candidates: Candidates, times: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    names = sorted(candidates.templates)
    places = np.array([names.index(name) for name in candidates.templates], dtype=np.int64)
    template = places[candidates.template[rows]]
    first, second = (keys[rows] for keys in candidates.keys)
    return rows[np.lexsort((second, first, template, times[rows]))]
