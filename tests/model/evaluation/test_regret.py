"""Regret: what it is on small cases, and what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_diode.model.evaluation.regret import (
    noise_regrets,
    problem_slices,
    regret_arrays,
    scores,
    standard_errors,
)
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.types.problem import MMShape

GROUP = np.array([0, 0, 0, 1, 1])
TIMES = np.array([10.0, 20.0, 15.0, 4.0, 2.0])


def regrets(predicted, k=1):
    numbers, values = regret_arrays(GROUP, TIMES, predicted, (k,))
    return dict(zip(numbers.tolist(), values[:, 0].tolist(), strict=True))


def test_regret_is_the_best_of_the_first_k_over_the_best():
    predicted = np.array([3.0, 1.0, 2.0, 1.0, 2.0])
    assert regrets(predicted) == {0: 2.0, 1: 2.0}
    assert regrets(predicted, k=2) == {0: 1.5, 1: 1.0}
    assert regrets(predicted, k=3) == {0: 1.0, 1: 1.0}
    assert set(regrets(TIMES).values()) == {1.0}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 60))
def test_regret_falls_with_k_and_does_not_see_the_order_of_rows(seed, rows):
    rng = np.random.default_rng(seed)
    group, times = rng.integers(0, 5, rows), rng.uniform(1, 9, rows)
    predicted = rng.permutation(rows).astype(float)
    ids, values = regret_arrays(group, times, predicted)
    assert (values >= 1).all()
    assert (np.diff(values, axis=1) <= 0).all()
    mixed = rng.permutation(rows)
    again_ids, again = regret_arrays(group[mixed], times[mixed], predicted[mixed])
    assert np.array_equal(ids, again_ids)
    assert np.array_equal(values, again)


def test_scores_sum_up_the_problems():
    score = scores(np.array([[1.0], [4.0]]), (1,))[0]
    assert (score.geomean, score.max, score.problems) == (2.0, 4.0, 2)
    assert scores(np.zeros((0, 5))) == []


def test_slices_cover_every_problem_once_by_op_layout_and_size(table):
    slices = problem_slices(table.arrays, table.roofline)
    for start in ("layout=", "size=", "rows="):
        total = sum(mask.astype(int) for name, mask in slices.items() if name.startswith(start))
        assert (total == 1).all()
    ops = [mask for name, mask in slices.items() if name.startswith("op=") and "," not in name]
    assert (sum(mask.astype(int) for mask in ops) == 1).all()


def test_rows_are_told_apart_by_the_loads_they_fit():
    kinds = {
        "rows=aligned": [("float16", 1504), ("float32", 1500)],
        "rows=half aligned": [("float16", 1500), ("float16", 30522), ("float32", 30522)],
        "rows=odd": [("bfloat16", 197), ("float32", 50257)],
    }
    for name, sizes in kinds.items():
        for dtype, k in sizes:
            problem = MMShape("mm", 64, 7, k, dtype=dtype, transpose_b=True)
            slices = problem_slices(ProblemArrays.of(problem), np.ones(1))
            assert [n for n, mask in slices.items() if "rows" in n and mask.all()] == [name]


def test_noise_alone_gives_regret_and_no_noise_gives_none():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(200), 10)
    times = rng.uniform(1, 1.2, len(group))
    assert (noise_regrets(group, times, np.zeros(len(group))) == 1).all()
    floor = noise_regrets(group, times, np.full(len(group), 0.05)).mean(axis=0)
    assert 1.005 < floor[0] < 1.1
    assert (np.diff(floor) <= 0).all()


def test_standard_error_of_one_sample_is_borrowed_from_times_like_it():
    spread, repeats = np.array([0.04, 0.04, 0.0]), np.array([9, 9, 1])
    errors = standard_errors(spread, repeats, np.full(3, 5.0))
    assert errors[0] == pytest.approx(0.0248, abs=1e-3)
    assert errors[2] == pytest.approx(3 * errors[0])
