from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_diode import Candidate, Candidates, Ranking, TritonGEMMConfig
from torch_diode.heuristics.policy import (
    adjust_for_compile,
    benchmark_count,
    benchmark_set,
    check_fits,
    single_choice_order,
)
from torch_diode.types.errors import InvalidValueError

SPACE = Candidates.of(
    [Candidate("aten")]
    + [Candidate("triton::mm", TritonGEMMConfig(16, 16, 16, num_stages=s)) for s in range(1, 31)]
)


def ranking(sigma: float | None = None, aten_us: float = 99.0) -> Ranking:
    times = np.arange(1.0, len(SPACE) + 1)
    times[0] = aten_us
    spread = None if sigma is None else np.full(len(SPACE), sigma)
    return Ranking.by_time(times, "test", spread)


def close(sigma: float, apart: float = 0.01) -> Ranking:
    """Candidates each a little slower than the one before; ATen in the middle of them."""
    times = np.exp(apart * np.arange(len(SPACE)))
    times[0] = times[15] * 1.0001
    return Ranking.by_time(times, "test", np.full(len(SPACE), sigma))


def test_without_an_error_estimate_the_usual_number_is_benchmarked():
    assert benchmark_count(ranking(), SPACE) == 5
    assert benchmark_count(ranking(), SPACE, top=7) == 7
    assert benchmark_count(ranking(float("nan")), SPACE) == 5


def test_two_are_benchmarked_where_the_heuristic_is_sure():
    assert benchmark_count(ranking(0.0), SPACE) == 2
    assert benchmark_count(close(0.001), SPACE) == 2


def test_more_are_benchmarked_where_the_heuristic_is_unsure():
    counts = [benchmark_count(close(sigma), SPACE) for sigma in (0.002, 0.01, 0.02, 0.04)]
    assert counts == sorted(counts)
    assert counts[0] < 5 < counts[-1]
    assert benchmark_count(close(9.0), SPACE) == 15


def test_never_more_than_were_ranked_and_aten():
    short = Ranking(np.array([3, 4]), np.full(len(SPACE), np.nan), "test")
    assert benchmark_set(short, SPACE, benchmark_count(short, SPACE)) == [3, 4, 0]
    with_aten = Ranking(np.array([3, 0]), np.full(len(SPACE), np.nan), "test")
    assert benchmark_set(with_aten, SPACE, benchmark_count(with_aten, SPACE)) == [3, 0]
    one = Ranking(np.array([3]), np.ones(len(SPACE)), "test", np.full(len(SPACE), 0.1))
    assert benchmark_count(one, SPACE) == 1


@pytest.mark.parametrize(("sigma", "first"), [(0.01, 7), (0.3, 0), (None, 7)])
def test_a_single_choice_is_the_best_unless_it_may_well_be_slower_than_aten(sigma, first):
    times = np.full(len(SPACE), 2.0)
    times[0], times[7] = 1.1, 1.0
    error = None if sigma is None else np.full(len(SPACE), sigma)
    order = single_choice_order(Ranking.by_time(times, "test", error), SPACE)
    assert order[0] == first
    assert sorted(order.tolist()) == list(range(len(SPACE)))


def test_aten_is_in_every_benchmark_of_a_space_that_has_it():
    assert benchmark_set(ranking(), SPACE, 5) == [1, 2, 3, 4, 0]
    assert benchmark_set(ranking(aten_us=3.5), SPACE, 5) == [1, 2, 0, 3, 4]
    assert benchmark_set(ranking(), SPACE, 1) == [1, 0]


def test_a_space_without_aten_follows_the_order():
    triton = SPACE.take(np.arange(1, 31))
    without = Ranking.by_time(np.arange(1.0, 31.0), "test", np.full(30, 0.5))
    assert benchmark_set(without, triton, 3) == [0, 1, 2]
    assert np.array_equal(single_choice_order(without, triton), without.order)


def test_a_ranking_of_other_candidates_is_refused():
    with pytest.raises(InvalidValueError, match="expected one for each of 31"):
        check_fits(Ranking.by_time(np.ones(3), "test"), SPACE)


TWO = SPACE.take(np.arange(2))


def test_time_added_to_aten_is_exact():
    ranking = Ranking.by_time(np.array([4.0, 5.0]), "model", np.array([0.1, 0.1]))
    counted = adjust_for_compile(ranking, TWO, False, 4.0)
    assert list(counted.order) == [1, 0]
    assert list(counted.predicted_us) == [8.0, 5.0]
    assert list(counted.sigma) == pytest.approx([0.05, 0.1])
    assert list(ranking.predicted_us) == [4.0, 5.0]


def test_time_added_to_templates_can_change_the_order():
    ranking = Ranking.by_time(np.array([5.0, 4.0]), "model")
    counted = adjust_for_compile(ranking, TWO, False, 0.0, 1.5)
    assert list(counted.predicted_us) == [5.0, 5.5]
    assert list(counted.order) == [0, 1]


@pytest.mark.parametrize(
    "ranking",
    [
        Ranking(np.array([0, 1]), np.array([np.nan, np.nan]), "names no times", open_sizes=True),
        Ranking(np.array([0, 1]), np.array([5.0, 4.0]), "an order of its own", open_sizes=True),
    ],
    ids=lambda ranking: ranking.source,
)
def test_an_order_that_is_not_by_time_is_unchanged(ranking):
    assert adjust_for_compile(ranking, TWO, True, 4.0) is ranking


@pytest.mark.parametrize(
    ("fixed", "open_sizes", "gain"), [(True, True, 0.2), (True, False, 0), (False, True, 0)]
)
def test_compiled_in_sizes_make_a_template_faster_than_its_predicted_time(fixed, open_sizes, gain):
    times = np.array([9.9, 10.0])
    found = adjust_for_compile(
        Ranking(np.arange(2), times, "model", None, "", open_sizes), TWO, fixed, 0
    )
    assert list(found.predicted_us) == pytest.approx([9.9, 10.0 - gain])
    assert list(found.order) == ([1, 0] if gain else [0, 1])


@given(
    st.lists(st.floats(0.5, 9.0), min_size=len(SPACE), max_size=len(SPACE)),
    st.floats(0.0, 9.0),
    st.booleans(),
)
def test_an_adjusted_order_is_still_by_time(times, extra, fixed):
    before = replace(Ranking.by_time(np.array(times), "test"), open_sizes=True)
    counted = adjust_for_compile(before, SPACE, fixed, extra)
    assert sorted(counted.order.tolist()) == list(range(len(SPACE)))
    assert (np.diff(counted.predicted_us[counted.order]) >= 0).all()
    assert counted.predicted_us[0] == times[0] + extra
    others = [row for row in before.order.tolist() if row != 0]
    after = [row for row in counted.order.tolist() if row != 0]
    assert counted.predicted_us[after].tolist() == counted.predicted_us[others].tolist()


def cpu_ranking(times: dict[str, float], sigma: float) -> tuple[Ranking, Candidates]:
    space = Candidates.of(map(Candidate, times))
    return Ranking.by_time(
        np.array(list(times.values())), "test", np.full(len(times), sigma)
    ), space


@pytest.mark.parametrize(
    ("times", "sigma", "chosen"),
    [
        ({"aten": 2.0, "onednn": 1.0}, 0.1, "onednn"),
        ({"aten": 2.0, "onednn": 1.0}, 0.5, "aten"),
        ({"aten": 1.02, "onednn": 1.0}, 0.05, "aten"),
        ({"aten": 1.02, "onednn": 1.0}, 0.01, "onednn"),
        ({"aten": 1.005, "onednn": 1.0}, 0.001, "aten"),
        ({"mkl_packed": 1.0, "onednn_packed": 0.9}, 0.5, "mkl_packed"),
        ({"onednn_packed": 0.9, "mkl_packed": 1.0, "aten": 1.0}, 0.5, "aten"),
        ({"onednn": 0.9, "onednn_packed": 1.0}, 0.5, "onednn"),
    ],
)
def test_on_a_cpu_plain_torchs_choice_is_left_only_for_a_sure_gain(times, sigma, chosen):
    ranking, space = cpu_ranking(times, sigma)
    order = single_choice_order(ranking, space)
    assert space[int(order[0])].template == chosen
    assert sorted(order.tolist()) == list(range(len(times)))


def test_on_a_cpu_the_second_best_is_chosen_where_the_best_is_a_risk():
    space = Candidates.of(map(Candidate, ("aten", "onednn", "onednn_packed")))
    sigma = np.array([0.02, 0.02, 0.9])
    ranking = Ranking.by_time(np.array([2.0, 1.1, 1.0]), "test", sigma)
    assert space[int(single_choice_order(ranking, space)[0])].template == "onednn"


def test_a_plain_choice_without_a_prediction_is_kept():
    space = Candidates.of(map(Candidate, ("aten", "onednn")))
    times = np.array([np.nan, 1.0])
    ranking = Ranking(np.array([1]), times, "test", np.array([np.nan, 0.01]))
    assert single_choice_order(ranking, space).tolist() == [0, 1]


def test_a_frozen_benchmark_includes_what_plain_torch_runs():
    names = ("onednn_packed", "mkl_packed", "onednn")
    space = Candidates.of(map(Candidate, names))
    ranking = Ranking.by_time(np.array([1.0, 9.0, 2.0]), "test", np.full(3, 0.01))
    assert benchmark_set(ranking, space, 2) == [0, 1]
    assert benchmark_count(ranking, space) == 2


def test_what_only_shortlists_decides_nothing_alone():
    shortlist = replace(ranking(aten_us=20.5), shortlist="lost")
    assert single_choice_order(shortlist, SPACE)[0] == 0
    assert benchmark_set(shortlist, SPACE, 3) == [1, 2, 0]
