"""The queue delay on a simulated GPU with known times."""

import random

import pytest
import torch

from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.queue_delay import LEAST_S, MOST_S, QueueDelay, needed

FLUSH_S = 25e-6


class SimulatedTimer(CudaTimer):
    """Launches are pairs of CPU seconds to queue and GPU seconds to run.

    `elapsed_s` is the total of all batches, `hiccup` the probability that the CPU is interrupted.
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
    """Time of the slower of the two if it never waits for the other."""
    queueing = sum(queueing for queueing, _ in launches)
    running = sum(FLUSH_S + kernel for _, kernel in launches)
    return repeats * max(queueing, running)


@pytest.mark.parametrize("queueing_us", [5, 20, 33, 40, 60, 120])
@pytest.mark.parametrize("hiccup", [0.0, 0.002])
def test_few_samples_are_late_and_little_time_is_wasted(queueing_us, hiccup):
    timer = SimulatedTimer(torch.device("cpu"), 0)
    timer.hiccup = hiccup
    launches = [(1e-6 * queueing_us, 8e-6)] * 300
    samples = timer.repeat(launches, 40)
    assert {len(taken) for taken in samples} == {40}
    assert timer.stalled < 0.1 * 300 * 40
    assert timer.elapsed_s < 1.2 * best_s(launches, 40)


def test_uneven_kernels_and_slow_launches_are_no_worse():
    timer, source = SimulatedTimer(torch.device("cpu"), 0), random.Random(0)
    costs = [(120e-6 if i % 4 == 0 else 30e-6, 1e-6 * source.uniform(4, 30)) for i in range(300)]
    timer.repeat(costs, 40)
    assert timer.stalled < 0.1 * 300 * 40
    assert timer.elapsed_s < 1.2 * best_s(costs, 40)


def test_a_long_delay_shrinks_when_it_is_not_needed():
    timer = SimulatedTimer(torch.device("cpu"), 0)
    timer.repeat([(100e-6, 8e-6)] * 300, 5)
    slow = timer.queue_delay
    assert slow.seconds(300) > 10 * LEAST_S
    timer.repeat([(10e-6, 8e-6)] * 300, 5)
    assert timer.queue_delay.seconds(300) < 1.1 * LEAST_S


def test_the_sleep_needed_by_a_batch():
    assert needed(5e-3, [True] * 4, 2e-3) == pytest.approx(3e-3)
    assert needed(5e-3, [True] * 4, 9e-3) == 0.0, "the CPU is ahead without one"
    assert needed(5e-3, [True, True, False, False], 0.0) == pytest.approx(10e-3)
    assert needed(5e-3, [True] + [False] * 99, 0.0) == pytest.approx(20e-3), "it may be chance"
    assert needed(5e-3, [False] * 100, 0.0) == pytest.approx(20e-3)


def test_a_small_batch_has_less_weight_than_a_large_one():
    """An interruption in one of two samples must not delay the next 300 for long."""
    few = QueueDelay().after(LEAST_S, [True, False], 0.0)
    many = QueueDelay().after(LEAST_S, [True, False] * 100, 0.0)
    assert few.per_sample_s == pytest.approx(LEAST_S * 2 / 102)
    assert many.per_sample_s == pytest.approx(LEAST_S / 100 * 2 / 3)


def test_the_delay_is_limited():
    known = QueueDelay()
    for attempt in range(100):
        known = known.after(known.seconds(300, attempt), [False] * 300, 0.0)
        assert known.seconds(300, attempt) <= MOST_S
    assert known.seconds(300) == MOST_S
