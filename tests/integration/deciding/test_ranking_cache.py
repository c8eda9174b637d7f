"""A question asked again is answered from memory where that cannot be told from asking."""

from __future__ import annotations

import numpy as np

from tests.integration.forced import FunctionHeuristic
from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic, Chain
from torch_diode.integration.deciding import ranking_cache
from torch_diode.integration.deciding.ranking_cache import RankingCache
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

H200 = known("nvidia-h200")
PROBLEM = MMShape("mm", 128, 256, 512)


class Counting(FunctionHeuristic):
    """Counts how often it is asked."""

    def __init__(self, steady: bool) -> None:
        super().__init__(self._rank)
        self.steady, self.asked = steady, 0

    def _rank(self, candidates: Candidates) -> Ranking:
        self.asked += 1
        return Ranking.by_time(np.arange(1.0, len(candidates) + 1), "counting")


def test_a_steady_heuristic_is_asked_once_for_each_question() -> None:
    kept, heuristic = RankingCache(), Counting(steady=True)
    space = candidate_space(PROBLEM, H200)
    first = kept.of(heuristic, PROBLEM, space, H200)
    assert kept.of(heuristic, PROBLEM, space, H200) is first
    kept.of(heuristic, MMShape("mm", 129, 256, 512), space, H200)
    assert heuristic.asked == 2


def test_other_heuristics_are_asked_each_time() -> None:
    kept, heuristic = RankingCache(), Counting(steady=False)
    space = candidate_space(PROBLEM, H200)
    for _ in range(3):
        kept.of(heuristic, PROBLEM, space, H200)
    assert heuristic.asked == 3


def test_other_candidates_hardware_or_heuristic_make_another_question() -> None:
    kept, one, two = RankingCache(), Counting(steady=True), Counting(steady=True)
    space = candidate_space(PROBLEM, H200)
    kept.of(one, PROBLEM, space, H200)
    kept.of(one, PROBLEM, space.take(np.arange(10)), H200)
    kept.of(one, PROBLEM, space, known("nvidia-h100"))
    kept.of(two, PROBLEM, space, H200)
    assert (one.asked, two.asked) == (3, 1)


def test_a_chain_is_as_steady_as_its_members() -> None:
    assert Chain(AnalyticalHeuristic(), Counting(steady=True)).steady
    assert not Chain(AnalyticalHeuristic(), Counting(steady=False)).steady


def test_the_number_kept_is_bounded() -> None:
    kept, heuristic = RankingCache(), Counting(steady=True)
    space = candidate_space(PROBLEM, H200).take(np.arange(3))
    for m in range(1, 2 * ranking_cache._KEPT):
        kept.of(heuristic, MMShape("mm", m, 256, 512), space, H200)
    assert len(kept._kept) <= ranking_cache._KEPT
