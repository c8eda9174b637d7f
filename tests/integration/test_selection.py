"""How many candidates go to a benchmark, and which."""

from __future__ import annotations

import numpy as np
import pytest

from torch_diode.integration.selection import check_fits, how_many, shortlist
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.candidates import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.ranking import Ranking

SPACE = Candidates.of(
    [Candidate("aten")]
    + [Candidate("triton::mm", TritonGEMMConfig(16, 16, 16, num_stages=s)) for s in range(1, 31)]
)


def ranking(sigma: float | None = None, aten_us: float = 99.0) -> Ranking:
    times = np.arange(1.0, len(SPACE) + 1)
    times[0] = aten_us
    spread = None if sigma is None else np.full(len(SPACE), sigma)
    return Ranking.by_time(times, "test", spread)


@pytest.mark.parametrize(
    ("sigma", "count"), [(None, 5), (0.0, 5), (0.05, 5), (0.08, 8), (0.1, 10), (9.0, 15)]
)
def test_more_where_the_heuristic_is_unsure(sigma: float | None, count: int) -> None:
    assert how_many(ranking(sigma)) == count


def test_an_error_estimate_that_is_no_number_counts_as_none() -> None:
    assert how_many(ranking(float("nan"))) == 5


def test_never_more_than_were_ranked() -> None:
    short = Ranking(np.array([3, 4]), np.full(len(SPACE), np.nan), "test")
    assert how_many(short) == 2


def test_aten_takes_the_last_place_where_it_earned_none() -> None:
    assert shortlist(ranking(), SPACE, 5) == [1, 2, 3, 4, 0]


def test_aten_keeps_the_place_it_earned() -> None:
    assert shortlist(ranking(aten_us=3.5), SPACE, 5) == [1, 2, 0, 3, 4]


def test_aten_joins_a_single_candidate() -> None:
    assert shortlist(ranking(), SPACE, 1) == [1, 0]


def test_a_space_without_aten_has_none() -> None:
    triton = SPACE.take(np.arange(1, 31))
    assert shortlist(Ranking.by_time(np.arange(1.0, 31.0), "test"), triton, 3) == [0, 1, 2]


def test_a_ranking_of_something_else_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="expected one for each of 31"):
        check_fits(Ranking.by_time(np.ones(3), "test"), SPACE)
