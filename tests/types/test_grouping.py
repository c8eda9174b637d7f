from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from torch_diode.types.grouping import group, number_rows

wide = st.integers(-(2**40), 2**40)
narrow = st.integers(0, 2)
rows = st.lists(
    st.tuples(narrow, wide | narrow, st.sampled_from("abc"), st.booleans()), max_size=20
)


def table_of(items):
    columns = list(zip(*items, strict=True)) or [(), (), (), ()]
    kinds = (pa.int8(), pa.int64(), pa.string(), pa.bool_())
    arrays = [pa.array(list(v), kind) for v, kind in zip(columns, kinds, strict=True)]
    arrays[2] = arrays[2].dictionary_encode()
    return pa.table(dict(zip("abcd", arrays, strict=True)))


def slowly(items):
    """Group numbers in order of first appearance, and where each group first appears."""
    seen, ids, first = {}, [], []
    for position, item in enumerate(items):
        if item not in seen:
            seen[item] = len(seen)
            first.append(position)
        ids.append(seen[item])
    return ids, first


@given(rows)
def test_groups_are_those_a_dictionary_finds(items):
    groups = group(table_of(items), ("a", "b", "c", "d"))
    ids, first = slowly(items)
    assert groups.ids.tolist() == ids
    assert groups.first.tolist() == first
    assert groups.counts.tolist() == [ids.count(number) for number in range(len(first))]


@given(rows)
def test_the_order_of_the_columns_makes_no_difference(items):
    table = table_of(items)
    assert (group(table, ("a", "b", "c")).ids == group(table, ("c", "b", "a")).ids).all()


@given(st.lists(st.tuples(wide, wide, wide, wide), max_size=12))
def test_numbering_stays_exact_when_the_columns_together_overflow(items):
    columns = [np.array(c, dtype=np.int64) for c in zip(*items, strict=True)] or [np.zeros(0)]
    assert number_rows(columns, len(items)).tolist() == slowly(items)[0]


def test_a_column_is_not_lost_where_the_others_fill_the_number():
    """Three columns of 32 bits: the first would be shifted out of 64."""
    top = 2**32 - 1
    items = [(0, 0, 0), (1, 0, 0), (top, top, top), (0, 0, 0)]
    columns = [np.array(column, dtype=np.int64) for column in zip(*items, strict=True)]
    assert number_rows(columns, len(items)).tolist() == [0, 1, 2, 0]


@given(
    st.lists(st.tuples(narrow, st.none() | st.integers(1, 5).map(float)), max_size=20),
    st.integers(1, 4),
)
def test_the_fastest_are_those_a_sort_puts_first(items, k):
    ids = [number for number, _ in items]
    times = np.array([np.nan if time is None else time for _, time in items])
    groups = group(pa.table({"a": pa.array(ids, pa.int8())}), ("a",))
    expected = []
    for number in dict.fromkeys(ids):
        usable = [row for row, (n, time) in enumerate(items) if n == number and time is not None]
        expected += sorted(usable, key=lambda row: items[row][1])[:k]
    assert groups.fastest(times, k).tolist() == expected


def test_nothing_has_no_groups():
    groups = group(table_of([]), ("a", "b", "c", "d"))
    assert len(groups) == 0
    assert groups.fastest(np.zeros(0)).tolist() == []
