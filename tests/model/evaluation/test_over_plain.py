"""Decisions over plain torch's, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu_timings import cpu_timings
from torch_diode.hardware import find
from torch_diode.model.evaluation.over_plain import Decided, over_plain
from torch_diode.model.features.table import feature_table

TABLE = feature_table(cpu_timings(2), find("amd-zen5", 1))


def summary(times, noise=0.0):
    """Problems of plain torch's choice at 1 us, and these choices of a best of half a us."""
    count = len(times)
    table = replace(
        TABLE,
        time_us=np.array([1.0, 0.5, *times], np.float32),
        noise=np.full(count + 2, noise, np.float32),
    )
    chosen = np.arange(count) + 2
    decided = Decided(chosen, np.zeros(count, np.int64), np.ones(count, np.int64))
    return over_plain(table, decided, {"first": np.arange(count) < 1})


def test_the_ratios_are_summarised():
    found = summary([0.5, 2.0])
    assert found["all"].geomean == pytest.approx(1)
    assert (found["all"].worst, found["all"].slower, found["all"].problems) == (2, 1, 2)
    assert found["first"].geomean == pytest.approx(0.5)
    assert found["all"].best == pytest.approx(0.5)
    assert found["all"].changed == 1


@pytest.mark.parametrize(("noise", "slower"), [(0.01, 1), (0.2, 0)])
def test_what_may_be_noise_does_not_count_as_slower(noise, slower):
    assert summary([1.2], noise)["all"].slower == slower
    assert summary([1.04], 0.0)["all"].slower == 0
