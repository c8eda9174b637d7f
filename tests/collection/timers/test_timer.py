"""What timers of all devices share, on a device whose times are known."""

import random
import statistics

import pytest
import torch

from torch_diode.collection.timers.timer import Timer, half_width, middle_mean, summarise

LAUNCHES = [lambda: None] * 4


class Known(Timer):
    """Kernels of known times, with a percent of noise."""

    device, stalled = torch.device("cpu"), 0

    def __init__(self, *times: float) -> None:
        self.times, self.taken = times, [0] * len(times)
        self.random = random.Random(0)

    def _rounds(self, launches, members, repeats, samples):
        for _ in range(repeats):
            for index in members:
                self.taken[index] += 1
                samples[index].append(self.times[index] * self.random.gauss(1.0, 0.01))


def test_the_closer_to_the_fastest_the_more_often_a_kernel_is_timed():
    timer = Known(10.0, 11.0, 14.0, 40.0)
    measured = timer.measure(LAUNCHES)
    assert timer.taken == [10, 10, 4, 1]
    assert [m.time_us for m in measured] == pytest.approx(timer.times, rel=0.03)
    assert timer.measure([]) == []


def test_refining_drops_what_is_clearly_behind_but_not_what_is_always_timed():
    timer = Known(10.0, 10.5, 11.5, 40.0)
    first = timer.measure(LAUNCHES)
    timer.taken = [0] * 4
    refined = timer.refine(LAUNCHES, first, always=[3], band=0.001)
    assert timer.taken[0] == timer.taken[3] > timer.taken[1]
    assert refined[0].time_us == pytest.approx(10.0, rel=0.003)
    assert refined[0].repeats == timer.taken[0]


def test_refining_ends_once_the_best_is_known_well_enough():
    timer = Known(10.0, 20.0, 30.0, 40.0)
    first = timer.measure(LAUNCHES)
    timer.taken = [0] * 4
    refined = timer.refine(LAUNCHES, first, band=0.05)
    assert timer.taken == [15, 0, 0, 0]
    assert refined[1:] == first[1:]


def test_a_first_sample_that_loads_the_kernel_does_not_count():
    assert summarise([900.0, 10.0, 10.0, 10.0]).time_us == 10.0
    assert summarise([900.0, 10.0]).time_us == 455.0
    assert summarise([900.0, 10.0]).spread == 0.0


def test_a_middle_mean_is_finer_than_the_clock_and_has_no_outliers():
    noise = random.Random(1)
    ticks = [round(5.03 + noise.gauss(0, 0.25), 1) for _ in range(4000)]
    found = middle_mean([*ticks, 500.0, 900.0])
    assert statistics.median(ticks) == 5.0
    assert found.time_us == pytest.approx(5.03, abs=0.01)
    assert half_width(found) == pytest.approx(1.96 * 0.25 / 5.03 / 4000**0.5, rel=0.2)
