import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import samples
from tests.strategies import datasets, key, timings
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError


@given(st.lists(timings(), max_size=8, unique_by=key))
def test_rows_come_out_as_they_went_in(rows):
    dataset = Dataset.from_timings(rows)
    assert list(dataset) == rows
    assert [dataset[number] for number in range(len(dataset))] == rows


@given(datasets(), st.randoms())
def test_the_digest_does_not_depend_on_the_order_of_rows(dataset, random):
    order = list(range(len(dataset)))
    random.shuffle(order)
    shuffled = dataset.take(np.array(order, dtype=np.int64))
    assert shuffled.digest == dataset.digest
    assert shuffled == dataset
    assert hash(shuffled) == hash(dataset)


@given(datasets(), datasets())
def test_two_datasets_share_a_digest_only_if_they_hold_the_same_timings(one, other):
    assert (one.digest == other.digest) == (set(one) == set(other))


@given(datasets(), datasets())
def test_merging_the_first_or_the_last_keeps_one_of_each(one, other):
    first = Dataset.merge([one, other], "first")
    last = Dataset.merge([one, other], "last")
    assert {key(t): t for t in first} == {**{key(t): t for t in other}, **{key(t): t for t in one}}
    assert {key(t): t for t in last} == {**{key(t): t for t in one}, **{key(t): t for t in other}}


@given(datasets(), datasets())
def test_merging_refuses_what_stands_in_both(one, other):
    shared = {key(t) for t in one} & {key(t) for t in other}
    if shared:
        with pytest.raises(InvalidValueError, match="same timing twice"):
            Dataset.merge([one, other])
    else:
        assert set(Dataset.merge([one, other])) == {*one, *other}


@given(datasets(), st.sampled_from(["hardware", "op", "dtype", "status", "method"]))
def test_the_parts_of_a_filter_make_the_whole(dataset, name):
    parts = [dataset.filter(**{name: text}) for text in dataset.texts(name)]
    assert sum(map(len, parts)) == len(dataset)
    assert Dataset.merge(parts) == dataset if parts else not len(dataset)


def test_an_unknown_column_to_filter_by_or_way_to_merge_is_refused():
    with pytest.raises(InvalidValueError, match="filter: got 'M'; expected one of hardware, op"):
        samples.dataset().filter(M="512")
    with pytest.raises(InvalidValueError, match="expected one of refuse, first, last"):
        Dataset.merge([], "fastest")


def test_merging_unites_provenance():
    one = Dataset.from_timings(samples.TIMINGS[:2], {"collected": ("b",), "by": ("x",)})
    two = Dataset.from_timings(samples.TIMINGS[2:], {"collected": ("a", "b")})
    assert Dataset.merge([one, two]).provenance == {"by": ("x",), "collected": ("a", "b")}


def test_provenance_is_names_with_several_texts():
    for bad in ({"a": "text"}, {"a": (1,)}, {1: ("a",)}):
        with pytest.raises(InvalidValueError, match="provenance"):
            Dataset.from_timings((), bad)


def test_the_digest_is_the_same_in_every_process():
    """It stands in model cards: it must never depend on the run."""
    assert samples.dataset().digest == (
        "9b6bd17b0da7a0a07c0bfc283940c9bc9238f3373e085e84a0118ed517c376b1"
    )


def test_an_empty_dataset_has_a_length_a_digest_and_no_groups():
    empty = Dataset.empty()
    assert (len(empty), len(empty.problems), list(empty), empty.texts("op")) == (0, 0, [], [])
    assert empty == Dataset.from_timings([])


def test_a_time_of_infinity_means_did_not_run():
    columns = {name: [value] * 3 for name, value in samples.LINEAR.to_dict().items()}
    columns |= {"hardware": ["nvidia-h200"] * 3, "template": ["aten", "onednn", "mkl_packed"]}
    columns |= {"time_us": [np.inf, 5.0, np.inf], "status": ["ok", "ok", "out_of_resources"]}
    read = [(t.time_us, t.status) for t in Dataset.from_columns(columns)]
    assert read == [(None, "failed"), (5.0, "ok"), (None, "out_of_resources")]


def test_timings_can_be_added_one_by_one():
    dataset, (linear, config) = Dataset.empty(), (samples.LINEAR, samples.SMALL.config)
    before = dataset.digest
    dataset.add_timing("nvidia-h200", "mm", linear, config, 41.25)
    dataset.add_timing("nvidia-h200", "mm", linear, samples.LARGE, float("inf"))
    assert [(t.candidate, t.time_us, t.status) for t in dataset] == [
        (samples.SMALL, 41.25, "ok"),
        (samples.LARGE, None, "failed"),
    ]
    assert dataset.digest != before
    with pytest.raises(InvalidValueError, match="op: got 'addmm'; expected one of mm"):
        dataset.add_timing("nvidia-h200", "addmm", linear, config, 1.0)
