from __future__ import annotations

import numpy as np
import pytest

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.table import LookupTable
from torch_diode.heuristics.testing.conformance import check_heuristic
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table, TableEntry

H200 = known("nvidia-h200")
PROBLEM = MMShape("mm", 512, 512, 512)
SPACE = candidate_space(PROBLEM, H200)
FAST = Candidate("triton::mm", TritonGEMMConfig(64, 64, 64, 8, 3, 4))
SLOW = Candidate("aten")
NOT_OFFERED = Candidate("triton::mm", TritonGEMMConfig(512, 512, 512, 8, 3, 4))


def table(*entries: TableEntry) -> Table:
    return Table((("nvidia-h200", PROBLEM, entries),))


TWO = table(TableEntry(FAST, 4.0, "new"), TableEntry(SLOW, 5.0))


def winner(heuristic: LookupTable, space: Candidates = SPACE) -> Candidate:
    ranking = heuristic.rank(PROBLEM, space, H200)
    return space[int(ranking.order[0])]


def test_a_hit_has_the_rows_candidates_in_their_order_with_their_times() -> None:
    ranking = LookupTable(TWO).rank(PROBLEM, SPACE, H200)
    assert [p.candidate for p in ranking.predictions(SPACE)] == [FAST, SLOW]
    assert [p.predicted_us for p in ranking.predictions(SPACE)] == [4.0, 5.0]
    assert ranking.source == "table"


@pytest.mark.parametrize(
    ("problem", "hardware"),
    [(MMShape("mm", 512, 512, 513), "nvidia-h200"), (PROBLEM, "nvidia-a100")],
    ids=str,
)
def test_another_problem_or_hardware_is_a_miss_that_says_so(
    problem: MMShape, hardware: str
) -> None:
    heuristic = LookupTable(TWO)
    assert heuristic.rank(problem, SPACE, known(hardware)) is None
    assert "no row" in heuristic.why_abstained(problem, SPACE, known(hardware))


def test_a_candidate_that_is_not_on_offer_is_passed_over() -> None:
    assert winner(LookupTable(table(TableEntry(NOT_OFFERED), TableEntry(SLOW)))) == SLOW
    only = LookupTable(table(TableEntry(NOT_OFFERED)))
    assert only.rank(PROBLEM, SPACE, H200) is None
    assert "on offer" in only.why_abstained(PROBLEM, SPACE, H200)


def test_an_order_without_all_times_names_none() -> None:
    ranking = LookupTable(table(TableEntry(FAST, 4.0), TableEntry(SLOW))).rank(PROBLEM, SPACE, H200)
    assert np.isnan(ranking.predicted_us).all()


def test_a_changed_template_is_a_hit_with_a_note() -> None:
    ranking = LookupTable(TWO, template_hashes={"triton::mm": "newer"}).rank(PROBLEM, SPACE, H200)
    assert SPACE[int(ranking.order[0])] == FAST
    assert "triton::mm" in ranking.note


def test_a_changed_template_is_a_miss_when_strict() -> None:
    hashes = {"triton::mm": "newer"}
    assert winner(LookupTable(TWO, strict=True, template_hashes=hashes)) == SLOW
    alone = LookupTable(table(TableEntry(FAST, 4.0, "new")), True, hashes)
    assert alone.rank(PROBLEM, SPACE, H200) is None
    assert "strict" in alone.why_abstained(PROBLEM, SPACE, H200)


@pytest.mark.parametrize("hashes", [None, {}, {"triton::mm": "new"}, {"triton::bmm": "newer"}])
def test_the_same_or_an_unknown_template_is_a_plain_hit(hashes: dict[str, str] | None) -> None:
    heuristic = LookupTable(TWO, strict=True, template_hashes=hashes)
    ranking = heuristic.rank(PROBLEM, SPACE, H200)
    assert winner(heuristic) == FAST
    assert ranking.note == ""


def measured_under(torch: str, triton: str = "") -> Table:
    rows = (("nvidia-h200", PROBLEM, (TableEntry(FAST, 4.0), TableEntry(SLOW, 5.0))),)
    return Table(rows, (("torch", torch), ("triton", triton)))


HERE = {"torch": "2.13.0", "triton": "3.9.0"}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (measured_under("2.11.0"), "measured under torch 2.11.0, this is 2.13.0"),
        (measured_under("2.13.1", "3.6.0"), "measured under triton 3.6.0, this is 3.9.0"),
        (measured_under("2.10.0, 2.13.0", "3.9.1"), ""),
        (measured_under(""), ""),
        (table(TableEntry(FAST, 4.0), TableEntry(SLOW, 5.0)), ""),
    ],
)
def test_without_hashes_the_releases_it_was_measured_under_decide(found: Table, said: str) -> None:
    noted = LookupTable(found, releases=HERE).rank(PROBLEM, SPACE, H200)
    assert noted.note == said
    # ATen is no template: what is left where the kernel is passed over.
    assert winner(LookupTable(found, strict=True, releases=HERE)) == (SLOW if said else FAST)


def test_an_equal_hash_outweighs_another_release() -> None:
    other = Table(table(TableEntry(FAST, 4.0, "new")).rows, (("torch", "2.11.0"),))
    assert winner(LookupTable(other, True, {"triton::mm": "new"}, releases=HERE)) == FAST


def test_of_two_entries_that_are_one_kernel_the_better_counts() -> None:
    problem = MMShape("mm", 512, 512, 32)  # K fits a block: stages make no difference
    space = candidate_space(problem, H200)
    entries = tuple(
        TableEntry(Candidate("triton::mm", TritonGEMMConfig(64, 64, 32, 8, stages, 4)), time)
        for stages, time in ((3, 10.0), (4, 30.0))
    )
    ranking = LookupTable(Table((("nvidia-h200", problem, entries),))).rank(problem, space, H200)
    assert ranking.predicted_us[ranking.order].tolist() == [10.0]


def test_the_fingerprint_follows_content_strictness_and_hashes() -> None:
    variants = [
        LookupTable(TWO),
        LookupTable(TWO, strict=True),
        LookupTable(TWO, template_hashes={"triton::mm": "newer"}),
        LookupTable(TWO, releases=HERE),
        LookupTable(table(TableEntry(FAST, 4.0, "new"))),
        LookupTable(table(TableEntry(SLOW, 5.0), TableEntry(FAST, 4.0, "new"))),
    ]
    assert len({variant.fingerprint() for variant in variants}) == len(variants)
    assert LookupTable(TWO).fingerprint() == LookupTable(TWO).fingerprint()


def test_a_table_conforms() -> None:
    report = check_heuristic(LookupTable(TWO), H200).raise_if_failed()
    assert report.answered > 0
