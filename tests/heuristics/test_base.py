from __future__ import annotations

from torch_diode.hardware import known
from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

PROBLEM = MMShape("mm", 64, 64, 64)
ATEN = Candidates.of([Candidate("aten")])


class Silent(Heuristic):
    name = "silent"

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        return None

    def fingerprint(self) -> str:
        return "silent"


def test_texts_that_join_to_the_same_text_have_different_digests() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") != digest("a", "b")


def test_a_digest_is_the_same_in_every_process() -> None:
    assert digest("torch", "diode") == "ab02b8119f64dc9c1a54"


def test_a_heuristic_that_abstains_says_who_on_what() -> None:
    reason = Silent().why_abstained(PROBLEM, ATEN, known("nvidia-h200"))
    assert "silent" in reason
    assert str(PROBLEM) in reason
