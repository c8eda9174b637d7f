import itertools
import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from tests.samples import H200
from torch_diode import Candidate, DiodeError, MMShape, TritonGEMMConfig
from torch_diode.candidates import candidate_space
from torch_diode.heuristics.custom import CustomHeuristic, heuristic
from torch_diode.heuristics.testing.conformance import check_heuristic
from torch_diode.types.errors import InvalidValueError

PROBLEM = MMShape("mm", 512, 512, 512)
SPACE = candidate_space(PROBLEM, H200)
LIMIT = 64


@heuristic("matmul")
def aten_for_large(problem: MMShape, candidates: Sequence[Candidate]) -> list[Candidate] | None:
    if problem.M < LIMIT:
        return None
    return [candidate for candidate in candidates if candidate.template == "aten"]


def test_a_function_becomes_a_heuristic_that_names_itself():
    ranking = aten_for_large.rank(PROBLEM, SPACE, H200)
    assert isinstance(aten_for_large, CustomHeuristic)
    assert ranking.source == "aten_for_large"
    assert [str(SPACE[int(i)]) for i in ranking.order] == ["aten"]
    assert np.isnan(ranking.predicted_us).all()


def test_a_function_that_never_returns_is_left_and_not_called_again():
    calls = []

    def hang(problem, candidates):
        calls.append(problem)
        threading.Event().wait()

    rule = CustomHeuristic(hang)
    rule.seconds = 0.01
    with pytest.raises(DiodeError, match=r"hang: took longer than 0\.01 s; it is not called again"):
        rule.rank(PROBLEM, SPACE, H200)
    with pytest.raises(DiodeError, match=r"hang: took longer than 0\.01 s before"):
        rule.rank(PROBLEM, SPACE, H200)
    assert len(calls) == 1
    endless = CustomHeuristic(lambda problem, candidates: itertools.cycle(candidates))
    with pytest.raises(InvalidValueError, match="got a candidate twice"):
        endless.rank(PROBLEM, SPACE, H200)


def test_none_or_an_empty_list_abstains():
    small = MMShape("mm", 8, 8, 8)
    assert aten_for_large.rank(small, SPACE, H200) is None
    assert "aten_for_large" in aten_for_large.why_abstained(small, SPACE, H200)
    assert CustomHeuristic(lambda p, cs: []).rank(PROBLEM, SPACE, H200) is None


def test_the_decorated_function_can_still_be_called():
    assert aten_for_large(PROBLEM, [Candidate("aten")]) == [Candidate("aten")]


def test_a_function_may_make_the_candidate_itself():
    wanted = Candidate("triton::mm", TritonGEMMConfig(64, 64, 64, 8, 3, 4))
    ranking = CustomHeuristic(lambda p, cs: [wanted]).rank(PROBLEM, SPACE, H200)
    assert SPACE[int(ranking.order[0])] == wanted


@pytest.mark.parametrize(
    "answer",
    [
        [Candidate("triton::mm", TritonGEMMConfig(512, 512, 512))],
        ["aten"],
        7,
        Candidate("aten"),
        [Candidate("aten"), Candidate("aten")],
    ],
    ids=repr,
)
def test_a_wrong_answer_is_refused_by_name(answer):
    with pytest.raises(DiodeError, match="mine"):
        CustomHeuristic(lambda p, cs: answer, "mine").rank(PROBLEM, SPACE, H200)


def test_an_error_of_the_function_propagates():
    def fails(problem, candidates):
        raise KeyError("oops")

    with pytest.raises(KeyError, match="oops"):
        CustomHeuristic(fails).rank(PROBLEM, SPACE, H200)


def test_unknown_decisions_and_values_that_are_not_functions_are_refused():
    with pytest.raises(InvalidValueError, match="matmul"):
        heuristic("padding")
    with pytest.raises(InvalidValueError, match="function"):
        CustomHeuristic(3)  # type: ignore[arg-type]


def test_a_custom_heuristic_conforms():
    check_heuristic(aten_for_large, H200).raise_if_failed()


def test_the_fingerprint_is_the_same_in_every_process():
    program = (
        "from torch_diode.heuristics import heuristic\n"
        "BLOCKS = {'small': 16, 'large': 128}\n"
        "def inner(c): return c.template in {'aten', 'decompose_k', 'triton::mm'}\n"
        "@heuristic('matmul')\n"
        "def mine(problem, candidates, low=frozenset({'a', 'b', 'c'})):\n"
        "    return [c for c in candidates if inner(c) or BLOCKS]\n"
        "print(mine.fingerprint())\n"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(prints) == 1
