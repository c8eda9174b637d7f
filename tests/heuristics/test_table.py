from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.chain import Chain
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


RANGE = table(TableEntry(FAST, 4.0, M=(500, 600)), TableEntry(SLOW, 5.0, M=(500, 600)))


@pytest.mark.parametrize(
    ("m", "source"),
    [
        (512, "table"),
        (600, "table, the range of M of mm:512x512x512:bfloat16:nn"),
        (1200, "table, 1.00 in log2 from mm:512x512x512:bfloat16:nn"),
    ],
)
def test_a_range_and_the_nearest_row_answer_with_an_order_and_are_named(
    m: int, source: str
) -> None:
    problem = MMShape("mm", m, 512, 512)
    space = candidate_space(problem, H200)
    heuristic = LookupTable(RANGE, nearest=1)
    ranking = heuristic.rank(problem, space, H200)
    assert [p.candidate for p in ranking.predictions(space)] == [FAST, SLOW]
    assert (ranking.source, np.isnan(ranking.predicted_us).all()) == (source, m != 512)
    assert LookupTable(RANGE).fingerprint() != heuristic.fingerprint()
    assert (LookupTable(RANGE).rank(problem, space, H200) is None) == (m == 1200)


def test_rows_that_no_problem_met_and_candidates_not_on_offer_are_noted() -> None:
    other = MMShape("mm", 7, 7, 7)
    rows = (
        ("nvidia-h200", PROBLEM, (TableEntry(NOT_OFFERED), TableEntry(SLOW))),
        ("nvidia-h200", other, (TableEntry(SLOW),)),
    )
    heuristic = LookupTable(Table(rows))
    assert heuristic.notes() == []
    for _ in range(2):
        heuristic.rank(PROBLEM, SPACE, H200)
    assert heuristic.notes() == [
        "table: 1 of 2 rows for nvidia-h200 match no problem met so far, such as "
        "mm:7x7x7:bfloat16:nn",
        f"table: not on offer: {NOT_OFFERED} for {PROBLEM}",
    ]
    assert Chain(heuristic).notes() == heuristic.notes()
    heuristic.rank(other, candidate_space(other, H200), H200)
    assert [note for note in heuristic.notes() if "match no" in note] == []
    abroad = LookupTable(Table(rows))
    abroad.rank(PROBLEM, SPACE, known("nvidia-a100"))
    assert abroad.notes() == ["table: no row for nvidia-a100, only for nvidia-h200"]


def test_a_library_that_only_frozen_graphs_offer_is_not_noted_where_another_answers() -> None:
    cpu = known("amd-zen5")
    problem = MMShape("mm", 64, 64, 64, dtype="float32")
    entries = (TableEntry(Candidate("onednn_packed")), TableEntry(Candidate("onednn")))
    heuristic = LookupTable(Table((("amd-zen5", problem, entries),)))
    heuristic.rank(problem, candidate_space(problem, cpu, ("aten", "onednn")), cpu)
    assert heuristic.notes() == []
    heuristic.rank(problem, candidate_space(problem, cpu, ("aten",)), cpu)
    assert heuristic.notes() == [f"table: not on offer: onednn_packed for {problem}"]
    of_a_gpu = LookupTable(Table((("amd-zen5", problem, (TableEntry(FAST), TableEntry(SLOW))),)))
    of_a_gpu.rank(problem, candidate_space(problem, cpu, ("aten",)), cpu)
    assert of_a_gpu.notes() == [f"table: not on offer: {FAST} for {problem}"]


def test_a_table_of_another_number_of_threads_has_a_note_or_is_a_miss_when_strict() -> None:
    cpu = replace(known("amd-zen5"), threads=2)
    problem = MMShape("mm", 64, 64, 64, dtype="float32")
    rows = (("amd-zen5", problem, (TableEntry(SLOW),)),)
    measured = Table(rows, (("threads", "1"),))
    space = candidate_space(problem, cpu, ("aten", "onednn"))
    note = "measured with 1 threads, here are 2"
    assert LookupTable(measured).rank(problem, space, cpu).note == note
    strict = LookupTable(measured, strict=True)
    assert strict.rank(problem, space, cpu) is None
    assert note in strict.why_abstained(problem, space, cpu)
    assert strict.rank(problem, space, replace(cpu, threads=1)).note == ""


def test_a_table_conforms() -> None:
    report = check_heuristic(LookupTable(TWO), H200).raise_if_failed()
    assert report.answered > 0
