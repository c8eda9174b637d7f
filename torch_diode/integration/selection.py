"""Which of the ranked candidates go to Inductor: pure functions, no torch in sight."""

from __future__ import annotations

import math

import numpy as np

from torch_diode.types.candidate import ATEN
from torch_diode.types.candidates import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.ranking import Ranking

USUAL_SIGMA = 0.05
"""The error estimate at which the first few candidates hold the best one nearly always."""
MOST_TIMES_UNSURE = 3.0


def how_many(ranking: Ranking, top: int = 5) -> int:
    """How many candidates to benchmark: `top`, and up to three times that where the heuristic
    says it is unsure about them."""
    count = top
    if ranking.sigma is not None:
        sigma = float(np.median(ranking.sigma[ranking.order[:top]]))
        if math.isfinite(sigma):
            times = min(max(sigma / USUAL_SIGMA, 1.0), MOST_TIMES_UNSURE)
            count = math.ceil(top * times)
    return min(count, len(ranking.order))


def shortlist(ranking: Ranking, candidates: Candidates, count: int) -> list[int]:
    """The `count` best positions, best first; ATen takes the last place if it earned none.

    The kernel that wins a benchmark can then never be slower than what plain torch would run.
    """
    rows = [int(row) for row in ranking.order[:count]]
    vendor = np.flatnonzero(candidates.is_template(ATEN))
    if len(vendor) and int(vendor[0]) not in rows:
        rows[max(count - 1, 1) :] = [int(vendor[0])]
    return rows


def check_fits(ranking: Ranking, candidates: Candidates) -> None:
    """Refuse a ranking of something else than these candidates."""
    if not isinstance(ranking, Ranking):
        raise InvalidValueError(
            f"heuristic: got a {type(ranking).__name__}; expected a Ranking, or None to abstain"
        )
    if len(ranking.predicted_us) != len(candidates):
        raise InvalidValueError(
            f"{ranking.source}: got {len(ranking.predicted_us)} predicted times; expected one for "
            f"each of {len(candidates)} candidates"
        )
