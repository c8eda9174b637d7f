import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import ATEN, LINEAR, SMALL
from tests.strategies import datasets, tables
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import MMShape
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
