import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.samples import H200
from torch_diode import Candidates, Hardware, Heuristic, MMShape, Ranking
from torch_diode.heuristics.testing.conformance import (
    ConformanceError,
    check_heuristic,
    edge_problems,
)
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import DTYPES, OPS

FEW = [MMShape("mm", 512, 512, 512), MMShape("mm", 1, 64, 64)]


class Smallest(Heuristic):
    """Conforms: prefers small configs, by a key that no two candidates share."""

    name = "smallest"

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        order = sorted(range(len(candidates)), key=lambda i: str(candidates[i]))
        return Ranking(np.array(order), np.full(len(candidates), np.nan), self.name)

    def fingerprint(self) -> str:
        return self.name


class Answering(Smallest):
    """Answers with whatever a function makes of the candidates."""

    def __init__(self, answer: Callable[[Candidates], Any]) -> None:
        self.answer = answer

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        ranking: Ranking | None = self.answer(candidates)
        return ranking


TURN = itertools.count()


def undecided(candidates: Candidates) -> Ranking:
    times = np.full(len(candidates), 1.0 + next(TURN))
    return Ranking(np.arange(len(candidates)), times, "x")


def changes_its_input(candidates: Candidates) -> None:
    candidates.fields["block_m"][:] = 16


def raises(candidates: Candidates) -> None:
    raise InvalidValueError("smallest: got lost")


class RestlessFingerprint(Smallest):
    def fingerprint(self) -> str:
        return str(next(TURN))


class AddressFingerprint(Smallest):
    def fingerprint(self) -> str:
        return object.__repr__(self)


class Nameless(Smallest):
    name = ""


@pytest.mark.parametrize("heuristic", [Smallest(), Answering(lambda candidates: None)])
def test_a_heuristic_that_follows_the_protocol_passes(heuristic):
    report = check_heuristic(heuristic, H200, FEW).raise_if_failed()
    assert report.passed
    assert report.questions == 6
    assert report.median_us > 0
    assert "conforms" in str(report)


@pytest.mark.parametrize(
    ("heuristic", "expected"),
    [
        (Answering(lambda c: Ranking.by_time(np.ones(len(c)), "x")), "another order"),
        (Answering(undecided), "two answers"),
        (Answering(raises), "got lost"),
        (Answering(lambda c: Ranking.by_time(np.ones(len(c) + 1), "x")), "one for each candidate"),
        (Answering(lambda c: [0]), "expected a Ranking"),
        (Answering(changes_its_input), "left alone"),
        (RestlessFingerprint(), "fingerprint"),
        (AddressFingerprint(), "addresses"),
        (Nameless(), "name"),
    ],
)
def test_each_violation_of_the_protocol_is_reported(heuristic, expected):
    report = check_heuristic(heuristic, H200, FEW[:1])
    assert any(expected in failure for failure in report.failures)
    with pytest.raises(ConformanceError, match="does not conform"):
        report.raise_if_failed()


def test_edge_problems_have_every_op_dtype_and_layout():
    problems = list(edge_problems())
    assert {problem.op for problem in problems} == set(OPS)
    assert {problem.dtype for problem in problems} == set(DTYPES)
    assert {problem.layout for problem in problems} == {"nn", "nt", "tn", "tt"}
    assert min(problem.M for problem in problems) == 1
    assert max(problem.M for problem in problems) >= 1 << 20
