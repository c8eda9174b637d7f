from collections.abc import Sequence

import pytest

from tests.samples import H200
from torch_diode import Candidate, Candidates, CustomHeuristic, MMShape
from torch_diode.heuristics.chain import Chain
from torch_diode.types.errors import InvalidValueError

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


@pytest.mark.parametrize(
    ("chain", "source"),
    [
        (Chain(SILENT, FIRST, SECOND), "first"),
        (Chain(FIRST, BROKEN), "first"),
        (Chain(Chain(SILENT), Chain(SECOND)), "second"),
    ],
)
def test_the_first_that_answers_wins_and_is_named(chain, source):
    ranking = chain.rank(PROBLEM, ATEN, H200)
    assert ranking.source == source


def test_an_error_does_not_lead_to_the_next():
    with pytest.raises(RuntimeError, match="broken"):
        Chain(BROKEN, FIRST).rank(PROBLEM, ATEN, H200)


def test_a_chain_abstains_where_all_do_and_gives_every_reason():
    chain = Chain(SILENT, SILENT)
    assert chain.rank(PROBLEM, ATEN, H200) is None
    assert chain.why_abstained(PROBLEM, ATEN, H200).count("silent") == 2
    assert Chain(SILENT, FIRST).why_abstained(PROBLEM, ATEN, H200) == ""
    assert Chain().rank(PROBLEM, ATEN, H200) is None
    assert Chain().why_abstained(PROBLEM, ATEN, H200)


def test_the_fingerprint_follows_the_members_and_their_order():
    members: list[tuple[CustomHeuristic, ...]] = [(FIRST,), (FIRST, SECOND), (SECOND, FIRST), ()]
    assert len({Chain(*some).fingerprint() for some in members}) == 4
    assert Chain(FIRST, SECOND).fingerprint() == Chain(FIRST, SECOND).fingerprint()


def test_a_function_is_refused_with_the_remedy():
    with pytest.raises(InvalidValueError, match="CustomHeuristic"):
        Chain(as_given)  # type: ignore[arg-type]
