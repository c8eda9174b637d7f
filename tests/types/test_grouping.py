import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from torch_diode.types.grouping import group, number_rows

WIDE, NARROW = st.integers(-(2**40), 2**40), st.integers(0, 2)
ROWS = st.lists(
    st.tuples(NARROW, WIDE | NARROW, st.sampled_from("abc"), st.booleans()), max_size=20
)


def table_of(rows):
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    types = (pa.int8(), pa.int64(), pa.string(), pa.bool_())
    arrays = [pa.array(list(v), type_) for v, type_ in zip(columns, types, strict=True)]
    arrays[2] = arrays[2].dictionary_encode()
    return pa.table(dict(zip("abcd", arrays, strict=True)))


def numbered(rows):
    """Group numbers in order of first appearance."""
    numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    return [numbers[row] for row in rows]


@given(ROWS)
def test_groups_are_numbered_in_order_of_first_appearance(rows):
    groups, ids = group(table_of(rows), ("a", "b", "c", "d")), numbered(rows)
    assert groups.ids.tolist() == ids
    assert groups.first.tolist() == [ids.index(number) for number in dict.fromkeys(ids)]
    assert groups.counts.tolist() == [ids.count(number) for number in dict.fromkeys(ids)]


@given(st.lists(st.tuples(WIDE, WIDE, WIDE, WIDE), max_size=12))
@example([(0, 0, 0), (1, 0, 0), (2**32 - 1,) * 3, (0, 0, 0)])
def test_groups_stay_exact_where_the_columns_together_overflow_an_integer(rows):
    columns = [np.array(c, dtype=np.int64) for c in zip(*rows, strict=True)] or [np.zeros(0)]
    assert number_rows(columns, len(rows)).tolist() == numbered(rows)


@given(
    st.lists(st.tuples(NARROW, st.none() | st.integers(1, 5).map(float)), max_size=20),
    st.integers(1, 4),
)
def test_the_fastest_of_each_group_come_best_first(rows, k):
    ids = [number for number, _ in rows]
    times = np.array([np.nan if time is None else time for _, time in rows])
    groups = group(pa.table({"a": pa.array(ids, pa.int8())}), ("a",))
    expected = []
    for number in dict.fromkeys(ids):
        usable = [row for row, (n, time) in enumerate(rows) if n == number and time is not None]
        expected += sorted(usable, key=lambda row: rows[row][1])[:k]
    assert groups.fastest(times, k).tolist() == expected
