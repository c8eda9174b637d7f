from __future__ import annotations

import itertools

import numpy as np
import pytest

from torch_diode.hardware import known
from torch_diode.heuristics.base import Heuristic
from torch_diode.heuristics.testing.conformance import (
    ConformanceError,
    check_heuristic,
    edge_problems,
)
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPES, OPS, MMShape
from torch_diode.types.ranking import Ranking

H200 = known("nvidia-h200")
FEW = [MMShape("mm", 512, 512, 512), MMShape("mm", 1, 64, 64)]


class Smallest(Heuristic):
    """Conforms: prefers small configs, by a key that no two candidates share."""

    name = "smallest"

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        order = sorted(range(len(candidates)), key=lambda i: str(candidates[i]))
        return Ranking(np.array(order), np.full(len(candidates), np.nan), self.name)

    def fingerprint(self) -> str:
        return self.name


class Abstaining(Smallest):
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        return None


class FollowsInput(Smallest):
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        return Ranking(np.arange(len(candidates)), np.ones(len(candidates)), self.name)


class Undecided(Smallest):
    def __init__(self) -> None:
        self.turn = itertools.count()

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        times = np.full(len(candidates), 1.0 + next(self.turn))
        return Ranking(np.arange(len(candidates)), times, self.name)


class Mutating(Smallest):
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        candidates.fields["block_m"][:] = 16
        return None


class Raising(Smallest):
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        raise InvalidValueError("smallest: got lost")


class WrongLength(Smallest):
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        return Ranking(np.array([0]), np.ones(len(candidates) + 1), self.name)


class WrongType(Smallest):
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        return [0]  # type: ignore[return-value]


class RestlessFingerprint(Smallest):
    def __init__(self) -> None:
        self.turn = itertools.count()

    def fingerprint(self) -> str:
        return str(next(self.turn))


class AddressFingerprint(Smallest):
    def fingerprint(self) -> str:
        return object.__repr__(self)


class Nameless(Smallest):
    name = ""


@pytest.mark.parametrize("heuristic", [Smallest(), Abstaining()], ids=lambda h: type(h).__name__)
def test_a_heuristic_that_keeps_to_the_protocol_passes(heuristic: Heuristic) -> None:
    report = check_heuristic(heuristic, H200, FEW).raise_if_failed()
    assert report.passed
    assert report.questions == 6
    assert report.median_us > 0
    assert "conforms" in str(report)


@pytest.mark.parametrize(
    ("heuristic", "complaint"),
    [
        (FollowsInput(), "another order"),
        (Undecided(), "two answers"),
        (Raising(), "got lost"),
        (WrongLength(), "one for each candidate"),
        (WrongType(), "expected a Ranking"),
        (Mutating(), "left alone"),
        (RestlessFingerprint(), "fingerprint"),
        (AddressFingerprint(), "addresses"),
        (Nameless(), "name"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Heuristic) else "",
)
def test_each_breach_of_the_protocol_is_found_and_named(
    heuristic: Heuristic, complaint: str
) -> None:
    report = check_heuristic(heuristic, H200, FEW[:1])
    assert any(complaint in failure for failure in report.failures)
    with pytest.raises(ConformanceError, match="does not conform"):
        report.raise_if_failed()


def test_edge_problems_have_every_op_dtype_and_layout() -> None:
    problems = list(edge_problems())
    assert {problem.op for problem in problems} == set(OPS)
    assert {problem.dtype for problem in problems} == set(DTYPES)
    assert {problem.layout for problem in problems} == {"nn", "nt", "tn", "tt"}
    assert min(problem.M for problem in problems) == 1
    assert max(problem.M for problem in problems) >= 1 << 20
