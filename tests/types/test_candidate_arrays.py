import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import ATEN, LARGE, SMALL, SPLIT
from tests.strategies import candidates
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.errors import InvalidValueError

several = st.lists(candidates(), max_size=8)


@given(several)
def test_arrays_give_back_the_candidates_they_were_made_of(items):
    assert list(Candidates.of(items)) == items


@given(st.lists(several, max_size=3))
def test_concatenating_arrays_is_concatenating_lists(parts):
    whole = Candidates.concat([Candidates.of(part) for part in parts])
    assert list(whole) == [item for part in parts for item in part]


@given(several, st.data())
def test_taking_rows_is_taking_items(items, data):
    rows = data.draw(st.lists(st.integers(0, len(items) - 1), max_size=5) if items else st.just([]))
    taken = Candidates.of(items).take(np.array(rows, dtype=np.int64))
    assert list(taken) == [items[row] for row in rows]


@given(several)
def test_keys_are_those_of_the_single_candidates_and_find_them(items):
    arrays = Candidates.of(items)
    first, second = (keys.tolist() for keys in arrays.keys)
    assert list(zip(first, second, strict=True)) == [item.keys for item in items]
    assert [arrays.position(item) for item in items] == [items.index(item) for item in items]


@given(several)
def test_the_first_row_of_each_template_that_has_candidates_is_known(items):
    arrays = Candidates.of(items)
    templates = [item.template for item in items]
    assert arrays.first_rows == {name: templates.index(name) for name in templates}
    assert arrays.take(np.zeros(0, np.int64)).first_rows == {}


@given(several)
def test_a_row_gives_the_same_candidate_each_time(items):
    arrays = Candidates.of(items)
    assert [arrays[row] for row in range(len(items))] == items
    assert [arrays[row] for row in range(len(items))] == items


def test_a_candidate_of_another_template_or_config_has_no_position():
    arrays = Candidates.of([ATEN, SMALL])
    assert arrays.position(LARGE) is None
    assert arrays.position(SPLIT) is None
    assert arrays.position(Candidate("triton::mm_persistent_tma", SMALL.config)) is None


def test_columns_that_are_missing_or_of_different_lengths_are_refused():
    good = Candidates.of([ATEN, SMALL])
    with pytest.raises(InvalidValueError, match="all of one length"):
        Candidates(good.templates, good.template[:1], good.fields)
    fields = {name: np.zeros(1, np.int32) for name in NUMBER_FIELDS[1:]}
    with pytest.raises(InvalidValueError, match="block_m"):
        Candidates(("aten",), np.zeros(1, np.int32), fields)
