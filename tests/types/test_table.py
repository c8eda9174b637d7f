from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import ATEN, LINEAR, SMALL
from tests.strategies import datasets, tables
from torch_diode.types.candidate import CppGEMMConfig, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet, ShapeSet
from torch_diode.types.table import Table, TableEntry
from torch_diode.types.timing import Timing


@given(datasets(), st.integers(1, 3))
def test_a_table_holds_the_fastest_of_every_problem_of_the_dataset(dataset, k):
    best = {}
    for timing in dataset:
        if timing.time_us is None:
            continue
        times = best.setdefault((timing.hardware, timing.problem), {})
        times[timing.candidate] = min(timing.time_us, times.get(timing.candidate, float("inf")))
    if not best:
        with pytest.raises(EmptySelectionError):
            Table.from_dataset(dataset, k)
        return
    table = Table.from_dataset(dataset, k)
    assert dict(table.provenance)["dataset"] == dataset.digest
    assert {row[:2] for row in table} == set(best)
    for hardware, problem, entries in table:
        times = best[hardware, problem]
        assert [e.time_us for e in entries] == sorted(times.values())[:k]
        assert all(times[e.candidate] == e.time_us for e in entries)


@given(tables())
def test_a_table_finds_every_row_it_holds(table):
    for hardware, problem, entries in table:
        assert table.lookup(hardware, problem) == entries
    assert table.lookup("no-such-chip", LINEAR) == ()
    assert (len(Table()), Table().hardware) == (0, ())


@given(tables(), st.randoms())
def test_the_order_in_which_rows_are_given_makes_no_difference(table, random):
    rows = list(table.rows)
    random.shuffle(rows)
    assert Table(tuple(rows), table.provenance) == table


def test_an_entry_has_the_hash_of_its_template_where_the_dataset_knows_one():
    timing = Timing("nvidia-h200", MMShape("mm", 64, 64, 64), SMALL, 5.0)
    known = {"templates": ("triton::bmm=ab", "triton::mm=cd")}
    two_of_it = {"templates": ("triton::mm=ab", "triton::mm=cd")}
    for provenance, expected in ((known, "cd"), (two_of_it, None), ({}, None)):
        table = Table.from_dataset(Dataset.from_timings([timing], provenance))
        assert table.rows[0][2][0].template_hash == expected


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("NVIDIA", LINEAR, (TableEntry(ATEN),))], "table.hardware"),
        ([("nvidia-h200", "mm", (TableEntry(ATEN),))], "table.problem"),
        ([("nvidia-h200", LINEAR, ())], "no candidate for mm:512x4096x4096"),
        ([("nvidia-h200", LINEAR, (TableEntry(ATEN), TableEntry(ATEN, 1.0)))], "candidate twice"),
        ([("nvidia-h200", LINEAR, (TableEntry(ATEN),))] * 2, "problem twice"),
    ],
)
def test_a_bad_row_is_refused(rows, said):
    with pytest.raises(InvalidValueError, match=said):
        Table(tuple(rows))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"time_us": 0.0}, "time_us"),
        ({"time_us": 10**400}, "time_us"),
        ({"template_hash": "../x"}, "template_hash"),
        ({"candidate": "aten"}, "candidate"),
    ],
)
def test_a_bad_entry_is_refused(fields, said):
    with pytest.raises(InvalidValueError, match=said):
        TableEntry(**{"candidate": SMALL, **fields})


def test_a_dataset_without_hashes_does_not_get_those_of_another():
    timings = [Timing("nvidia-h200", MMShape("mm", n, 64, 64), SMALL, 5.0) for n in (64, 128)]
    hashed, plain = (Dataset.from_timings([one]) for one in timings)
    hashed = Dataset(hashed.table, {"templates": ("triton::mm=ab",)})
    for parts in ([hashed, plain], [plain, hashed]):
        assert Dataset.merge(parts).template_hashes == {}
    only_aten = Dataset.from_timings([Timing("nvidia-h200", MMShape("mm", 8, 8, 8), ATEN, 5.0)])
    assert Dataset.merge([hashed, only_aten]).template_hashes == {"triton::mm": "ab"}


def row(M, *entries, hardware="nvidia-h200", K=64):
    return hardware, MMShape("mm", M, 64, K), entries


RANGED = Table(
    (
        row(32, TableEntry(SMALL, 5.0, M=(17, 32)), TableEntry(ATEN, 6.0)),
        row(64, TableEntry(ATEN, M=(8, 256))),
        row(24, TableEntry(ATEN, 4.0)),
    )
)


@pytest.mark.parametrize(
    ("m", "nearest", "own", "candidates", "distance"),
    [
        (24, 9, 24, [ATEN], 0),  # its own row, though a range holds it too
        (32, 0, 32, [SMALL, ATEN], 0),
        (20, 0, 32, [SMALL], 0),  # the narrower of two ranges, and the entry that has one
        (200, 9, 64, [ATEN], 0),
        (512, 0, None, [], 0),
        (512, 0.5, None, [], 0),
        (512, 1, 64, [ATEN], 1),
        (1, 3, 64, [ATEN], 3),
    ],
)
def test_an_exact_row_answers_before_a_range_and_that_before_the_nearest(
    m, nearest, own, candidates, distance
):
    match = RANGED.find("nvidia-h200", MMShape("mm", m, 64, 64), nearest)
    if own is None:
        assert match is None
        return
    assert (match.problem.M, match.distance) == (own, distance)
    assert [entry.candidate for entry in match.entries] == candidates


def test_the_nearest_row_is_of_the_same_kind_and_counts_every_size():
    nearest = RANGED.find("nvidia-h200", MMShape("mm", 64, 128, 32), 2)
    assert (nearest.problem.M, nearest.distance) == (64, 2)
    for other in (MMShape("mm", 64, 128, 32, transpose_b=True), MMShape("bmm", 64, 128, 32)):
        assert RANGED.find("nvidia-h200", other, 99) is None
    assert RANGED.find("nvidia-h100", MMShape("mm", 64, 128, 32), 99) is None


@pytest.mark.parametrize("text", ["17", "32-17", "0-4", "-", "1-99999999999", 17, [1, 2]])
def test_a_wrong_range_is_refused(text):
    with pytest.raises(InvalidValueError, match="a range from low to high, such as 17-32"):
        TableEntry.from_dict({"template": "aten", "M": text})


def test_a_range_without_its_rows_own_m_is_refused():
    with pytest.raises(InvalidValueError, match="expected a range with its own 64 in it"):
        Table((row(64, TableEntry(ATEN, M=(17, 32))),))


def test_filter_keeps_the_candidates_that_the_table_has_in_their_order():
    problem = MMShape("mm", 32, 64, 64)
    other = replace(SMALL, config=replace(SMALL.config, num_warps=8))
    assert RANGED.filter("nvidia-h200", problem, [ATEN, other, SMALL]) == [ATEN, SMALL]
    assert RANGED.filter("nvidia-h100", problem, [ATEN, SMALL]) == []


def test_a_merge_keeps_the_later_measurement_then_more_repetitions_then_the_first():
    def table(m, us, measured="", repeats=0, **facts):
        entry = TableEntry(ATEN, us, None, None, measured, repeats)
        return Table((row(m, entry),), tuple(facts.items()))

    merged = Table.merge(
        [
            table(1, 1.0, "2026-11-18", 99, torch="2.13.0"),
            table(1, 2.0, "2026-11-19", 1, torch="2.12.0, 2.13.0", triton="3.9.0"),
            table(2, 3.0, "2026-11-19", 5),
            table(2, 4.0, "2026-11-19", 6),
            table(3, 5.0),
            table(3, 6.0),
            table(4, 7.0),
            table(4, 8.0, repeats=1),
        ]
    )
    assert [entries[0].time_us for _, _, entries in merged] == [2.0, 4.0, 5.0, 8.0]
    assert merged.provenance == (("torch", "2.12.0, 2.13.0"), ("triton", "3.9.0"))


def test_an_entry_knows_the_day_and_the_repetitions_of_its_timing():
    timing = Timing("nvidia-h200", MMShape("mm", 8, 8, 8), ATEN, 5.0, repeats=21)
    days = {"collected": ("2026-11-18", "2026-11-19")}
    ((_, _, (entry,)),) = Table.from_dataset(Dataset.from_timings([timing], days))
    assert (entry.measured, entry.repeats) == ("2026-11-19", 21)


def test_a_cpus_timings_with_several_numbers_of_threads_are_refused():
    timing = Timing("amd-zen5", MMShape("mm", 8, 8, 8), ATEN, 5.0, threads=1)
    both = Dataset.from_timings([timing, replace(timing, threads=2)])
    with pytest.raises(InvalidValueError, match="got timings with 1, 2 threads"):
        Table.from_dataset(both)


@pytest.mark.parametrize(
    "value",
    [
        MMShape("bmm", 8, 16, 32, 4, "float16", transpose_b=True),
        TritonGEMMConfig(64, 64, 32),
        CppGEMMConfig(8, 16, 2),
        SMALL,
        ShapeSet.of([LINEAR, LINEAR]),
        OperationShapeSet.of([LINEAR, MMShape("bmm", 8, 16, 32, 4)]),
        RANGED,
    ],
    ids=lambda value: type(value).__name__,
)
def test_text_reads_back(value):
    text = value.serialize()
    assert type(value).parse(text) == value
    assert "\n" not in text
    for wrong in ("", "[]", "{", '{"x": NaN}', text.replace("}", ', "x": 1}')):
        with pytest.raises(InvalidValueError):
            type(value).parse(wrong)
