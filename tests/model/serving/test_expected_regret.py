"""Expected regret: what it is in cases one can count, and against draws of the same law."""

import numpy as np
import pytest

from torch_diode.model.serving.expected_regret import (
    expected_regrets,
    normal_cdf,
    probability_slower,
)


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_expected_regrets_are_those_of_many_draws(sigma):
    rng = np.random.default_rng(0)
    times = np.sort(rng.exponential(0.2, 30))
    spread = rng.uniform(0.5, 2, 30) * sigma
    drawn = times + spread * rng.standard_normal((100_000, 30))
    best = np.minimum.accumulate(drawn, axis=1)
    expected = (best - best[:, -1:]).mean(axis=0)
    assert np.allclose(expected_regrets(times, spread), expected, atol=0.02 * sigma)


def test_benchmarking_all_leaves_none_and_more_is_never_worse():
    regrets = expected_regrets(np.linspace(0, 0.1, 20), np.full(20, 0.05))
    assert regrets[-1] == 0
    assert (np.diff(regrets) <= 0).all()


def test_the_normal_law_to_four_digits():
    z = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert normal_cdf(z) == pytest.approx([0.02275, 0.15866, 0.5, 0.84134, 0.97725], abs=3e-4)


def test_who_is_predicted_faster_is_less_likely_slower():
    assert probability_slower(0.0, 0.1, 0.1) == pytest.approx(0.5)
    assert probability_slower(0.1, 0.06, 0.08) == pytest.approx(0.1587, abs=1e-3)
    assert probability_slower(0.1, 0.0, 0.0) < 1e-3
