from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import ATEN, LARGE, SMALL
from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.types.candidate import CONFIG_FIELDS, Candidate, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.timing import Prediction

SPACE = candidate_space(MMShape("mm", 64, 64, 64), known("nvidia-h200"))
times = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=10)


@given(times)
def test_by_time_orders_as_sorting_does_and_keeps_ties_in_place(values):
    ranking = Ranking.by_time(np.array(values), "test")
    assert ranking.order.tolist() == sorted(range(len(values)), key=values.__getitem__)


@given(st.lists(st.integers(1, 5), min_size=40, max_size=40), st.permutations(range(40)))
def test_with_candidates_the_order_does_not_depend_on_theirs_even_among_equal_times(
    values, permutation
):
    candidates = SPACE.take(np.linspace(0, len(SPACE) - 1, 40).astype(int))
    numbers, rows = np.array(values, float), np.array(permutation)
    straight = Ranking.by_time(numbers, "x", candidates=candidates)
    shuffled = Ranking.by_time(numbers[rows], "x", candidates=candidates.take(rows))
    assert rows[shuffled.order].tolist() == straight.order.tolist()
    assert (np.diff(numbers[straight.order]) >= 0).all()


@pytest.mark.parametrize("field", CONFIG_FIELDS)
def test_every_field_of_a_candidate_breaks_a_tie(field):
    greatest = TritonGEMMConfig(4096, 4096, 4096, 1024, 32, 64, 16, 64, 8)
    other = replace(greatest, **{field: 1})
    pair = [Candidate("triton::mm", config) for config in (greatest, other)]
    for items in (pair, pair[::-1]):
        candidates = Candidates.of(items)
        ranking = Ranking.by_time(np.ones(2), "x", candidates=candidates)
        assert candidates[int(ranking.order[0])] == pair[1]


def test_predictions_come_best_first_with_their_times():
    ranking = Ranking.by_time(np.array([3.0, 1.0, 2.0]), "mine", np.array([0.1, 0.2, 0.3]))
    chosen = Candidates.of([ATEN, SMALL, LARGE])
    assert ranking.predictions(chosen, top=2) == [
        Prediction(SMALL, 1.0, 0.2, "mine"),
        Prediction(LARGE, 2.0, 0.3, "mine"),
    ]


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_an_invalid_time_is_refused(bad):
    with pytest.raises(InvalidValueError, match="mine: got"):
        Ranking.by_time(np.array([1.0, bad]), "mine")
    with pytest.raises(InvalidValueError, match="mine: got"):
        Ranking.by_time(np.array([1.0, bad]), "mine", candidates=Candidates.of([ATEN, SMALL]))


@pytest.mark.parametrize(
    ("order", "said"),
    [([], "empty order"), ([0, 0], "twice"), ([3], "expected 0 to 2"), ([-1], "expected 0 to 2")],
)
def test_an_invalid_order_is_refused(order, said):
    with pytest.raises(InvalidValueError, match=said):
        Ranking(np.array(order, dtype=np.int64), np.ones(3), "mine")


def test_times_for_some_only_are_refused():
    with pytest.raises(InvalidValueError, match="for all ranked candidates, or for none"):
        Ranking(np.array([0, 1]), np.array([1.0, np.nan]), "mine")


def test_error_estimates_of_the_wrong_length_are_refused():
    with pytest.raises(InvalidValueError, match="2 error estimates for 3 candidates"):
        Ranking.by_time(np.ones(3), "mine", np.ones(2))
