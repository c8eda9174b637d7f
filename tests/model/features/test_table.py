"""A candidate measured several times counts once, with the mean of its times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from torch_diode.model.features.table import feature_table
from torch_diode.types.dataset import Dataset


@pytest.fixture
def timings(dataset):
    rows = np.flatnonzero(dataset.problems.ids < 3)
    return [dataset[int(row)] for row in rows]


def test_measured_once_is_left_alone(timings, h200):
    table = feature_table(Dataset.from_timings(timings), h200)
    assert len(table.group) == len(timings)
    assert np.array_equal(table.time_us, np.float32([timing.time_us for timing in timings]))


def test_two_measurements_are_one_row_between_them(timings, h200):
    first = replace(timings[0], spread=0.02, repeats=9)
    again = replace(first, method="again", time_us=first.time_us * 1.1)
    both = feature_table(Dataset.from_timings([first, *timings[1:], again]), h200)
    once = feature_table(Dataset.from_timings([first, *timings[1:]]), h200)
    assert np.array_equal(both.rows, once.rows)
    assert both.time_us[0] == pytest.approx(first.time_us * 1.1**0.5, rel=1e-3)
    assert both.noise[0] < once.noise[0]


def test_the_more_certain_measurement_counts_more(timings, h200):
    first = replace(timings[0], spread=0.05, repeats=3)
    again = replace(first, method="again", time_us=first.time_us * 1.1, spread=0.01, repeats=99)
    table = feature_table(Dataset.from_timings([first, *timings[1:], again]), h200)
    assert table.time_us[0] == pytest.approx(again.time_us, rel=0.01)


def test_the_best_of_some_over_the_best_of_all(timings, h200):
    table = feature_table(Dataset.from_timings(timings), h200)
    slowest = table.time_us == table.time_us.max()
    regrets = table.subset_regrets(slowest)
    (problem,) = np.flatnonzero(np.isfinite(regrets))
    assert regrets[problem] == table.time_us.max() / table.best_times()[problem]
    assert (table.subset_regrets(np.ones(len(table.rows), bool)) == 1).all()
