"""The head start on a simulated GPU: what the CPU and the GPU take is known, no clock is read."""

from __future__ import annotations

import random

import pytest
import torch

from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.queue_delay import LEAST_S, MOST_S, QueueDelay, needed

FLUSH_S = 25e-6


class SimulatedTimer(CudaTimer):
    """Launches are pairs: what queueing takes the CPU, and what the kernel takes the GPU.

    `elapsed_s` is what all batches took, `hiccup` a CPU's chance to be away for a while.
    """

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.elapsed_s = 0.0
        self.hiccup = 0.0

    def _sample(self, launches, sleep_s):
        cpu, gpu, clean = 0.0, sleep_s, []
        for queueing, kernel in launches:
            reached = max(gpu, cpu) + FLUSH_S
            cpu += queueing
            if self._random.random() < self.hiccup:
                cpu += self._random.expovariate(1 / LEAST_S)
            clean.append(reached > cpu)
            gpu = max(reached, cpu) + kernel
        self.elapsed_s += gpu
        left_s = gpu - cpu - launches[-1][1]
        return [1e6 * kernel for _, kernel in launches], clean, left_s


def best_s(launches: list[tuple[float, float]], repeats: int) -> float:
    """What the slower of the two takes for it, if the other never has to wait."""
    queueing = sum(queueing for queueing, _ in launches)
    running = sum(FLUSH_S + kernel for _, kernel in launches)
    return repeats * max(queueing, running)


@pytest.mark.parametrize("queueing_us", [5, 20, 33, 40, 60, 120])
@pytest.mark.parametrize("hiccup", [0.0, 0.002])
def test_hardly_a_sample_is_late_and_hardly_any_time_is_slept_away(queueing_us, hiccup):
    timer = SimulatedTimer(torch.device("cpu"), 0)
    timer.hiccup = hiccup
    launches = [(1e-6 * queueing_us, 8e-6)] * 300
    samples = timer.repeat(launches, 40)
    assert {len(taken) for taken in samples} == {40}
    assert timer.stalled < 0.1 * 300 * 40
    assert timer.elapsed_s < 1.2 * best_s(launches, 40)


def test_uneven_kernels_and_a_few_slow_launches_fare_no_worse():
    timer, source = SimulatedTimer(torch.device("cpu"), 0), random.Random(0)
    costs = [(120e-6 if i % 4 == 0 else 30e-6, 1e-6 * source.uniform(4, 30)) for i in range(300)]
    timer.repeat(costs, 40)
    assert timer.stalled < 0.1 * 300 * 40
    assert timer.elapsed_s < 1.2 * best_s(costs, 40)


def test_a_long_head_start_is_given_up_once_it_is_not_needed():
    timer = SimulatedTimer(torch.device("cpu"), 0)
    timer.repeat([(100e-6, 8e-6)] * 300, 5)
    slow = timer.queue_delay
    assert slow.seconds(300) > 10 * LEAST_S
    timer.repeat([(10e-6, 8e-6)] * 300, 5)
    assert timer.queue_delay.seconds(300) < 1.1 * LEAST_S


def test_the_sleep_that_would_have_done():
    assert needed(5e-3, [True] * 4, 2e-3) == pytest.approx(3e-3)
    assert needed(5e-3, [True] * 4, 9e-3) == 0.0, "the CPU is ahead without one"
    assert needed(5e-3, [True, True, False, False], 0.0) == pytest.approx(10e-3)
    assert needed(5e-3, [True] + [False] * 99, 0.0) == pytest.approx(20e-3), "it may be chance"
    assert needed(5e-3, [False] * 100, 0.0) == pytest.approx(20e-3)


def test_a_small_batch_says_less_than_a_large_one():
    """A hiccup in one of two samples must not put all of the next 300 to sleep for long."""
    few = QueueDelay().after(LEAST_S, [True, False], 0.0)
    many = QueueDelay().after(LEAST_S, [True, False] * 100, 0.0)
    assert few.per_sample_s == pytest.approx(LEAST_S * 2 / 102)
    assert many.per_sample_s == pytest.approx(LEAST_S / 100 * 2 / 3)


def test_a_head_start_has_an_end():
    known = QueueDelay()
    for attempt in range(100):
        known = known.after(known.seconds(300, attempt), [False] * 300, 0.0)
        assert known.seconds(300, attempt) <= MOST_S
    assert known.seconds(300) == MOST_S
