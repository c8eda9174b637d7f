"""Rankings are cached; decisions themselves are tested in hooks/test_choices."""

import numpy as np
import pytest

from tests.integration.forced import FunctionHeuristic
from tests.samples import H200
from torch_diode import Candidates, MMShape, Ranking
from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic, Chain
from torch_diode.integration.deciding.decider import Decider
from torch_diode.integration.settings import Settings

PROBLEM = MMShape("mm", 128, 256, 512)


class Counting(FunctionHeuristic):
    """Counts its calls."""

    def __init__(self, steady: bool) -> None:
        super().__init__(self._rank)
        self.steady, self.calls = steady, 0

    def _rank(self, candidates: Candidates) -> Ranking:
        self.calls += 1
        return Ranking.by_time(np.arange(1.0, len(candidates) + 1), "counting")


@pytest.mark.parametrize(("steady", "calls"), [(True, 1), (False, 3)])
def test_rankings_of_steady_heuristics_are_cached(steady, calls):
    heuristic = Counting(steady)
    decider, space = Decider(Settings(heuristic)), candidate_space(PROBLEM, H200)
    rankings = {id(decider.rank(PROBLEM, space, H200)): None for _ in range(3)}
    assert heuristic.calls == calls
    assert (len(rankings) == 1) or not steady


def test_another_problem_candidate_list_or_hardware_is_ranked_anew():
    heuristic = Counting(steady=True)
    decider, space = Decider(Settings(heuristic)), candidate_space(PROBLEM, H200)
    decider.rank(PROBLEM, space, H200)
    decider.rank(MMShape("mm", 129, 256, 512), space, H200)
    decider.rank(PROBLEM, space, known("nvidia-h100"))
    decider.rank(PROBLEM, space.take(np.arange(10)), H200)
    assert heuristic.calls == 4
    decider.change(Settings(other := Counting(steady=True)))
    decider.rank(PROBLEM, space, H200)
    assert (heuristic.calls, other.calls) == (4, 1)


def test_a_chain_is_as_steady_as_its_members():
    assert Chain(AnalyticalHeuristic(), Counting(steady=True)).steady
    assert not Chain(AnalyticalHeuristic(), Counting(steady=False)).steady
