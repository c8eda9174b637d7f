from __future__ import annotations

from collections.abc import Sequence

import pytest

from torch_diode.hardware import known
from torch_diode.heuristics.chain import Chain
from torch_diode.heuristics.custom import CustomHeuristic
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape

H200 = known("nvidia-h200")
PROBLEM = MMShape("mm", 64, 64, 64)
ATEN = Candidates.of([Candidate("aten")])


def as_given(problem: MMShape, candidates: Sequence[Candidate]) -> list[Candidate]:
    return list(candidates)


def abstains(problem: MMShape, candidates: Sequence[Candidate]) -> None:
    return None


def breaks(problem: MMShape, candidates: Sequence[Candidate]) -> None:
    raise RuntimeError("broken")


FIRST, SECOND = CustomHeuristic(as_given, "first"), CustomHeuristic(as_given, "second")
SILENT, BROKEN = CustomHeuristic(abstains, "silent"), CustomHeuristic(breaks, "broken")


def test_the_first_that_answers_wins_and_is_named() -> None:
    ranking = Chain(SILENT, FIRST, SECOND).rank(PROBLEM, ATEN, H200)
    assert ranking is not None
    assert ranking.source == "first"


def test_nobody_after_the_one_that_answers_is_asked() -> None:
    assert Chain(FIRST, BROKEN).rank(PROBLEM, ATEN, H200) is not None


def test_an_error_is_not_passed_over() -> None:
    with pytest.raises(RuntimeError, match="broken"):
        Chain(BROKEN, FIRST).rank(PROBLEM, ATEN, H200)


def test_a_chain_abstains_where_all_do_and_gives_every_reason() -> None:
    chain = Chain(SILENT, SILENT)
    assert chain.rank(PROBLEM, ATEN, H200) is None
    assert chain.why_abstained(PROBLEM, ATEN, H200).count("silent") == 2
    assert Chain(SILENT, FIRST).why_abstained(PROBLEM, ATEN, H200) == ""


def test_an_empty_chain_abstains() -> None:
    assert Chain().rank(PROBLEM, ATEN, H200) is None
    assert Chain().why_abstained(PROBLEM, ATEN, H200)


def test_the_fingerprint_follows_the_members_and_their_order() -> None:
    prints = {
        Chain(FIRST).fingerprint(),
        Chain(FIRST, SECOND).fingerprint(),
        Chain(SECOND, FIRST).fingerprint(),
        Chain().fingerprint(),
    }
    assert len(prints) == 4
    assert Chain(FIRST, SECOND).fingerprint() == Chain(FIRST, SECOND).fingerprint()


def test_chains_can_be_chained() -> None:
    ranking = Chain(Chain(SILENT), Chain(SECOND)).rank(PROBLEM, ATEN, H200)
    assert ranking is not None
    assert ranking.source == "second"


def test_what_is_no_heuristic_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidValueError, match="CustomHeuristic"):
        Chain(as_given)  # type: ignore[arg-type]
