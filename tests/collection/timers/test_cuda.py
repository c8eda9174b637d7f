import random

import numpy as np
import pytest
import torch

from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.timer import summarise
from torch_diode.types.errors import DiodeError


def test_one_stalled_sample_does_not_move_the_median():
    calm = summarise([5.0, 5.0, 5.1, 5.0, 5.1, 5.0])
    stalled = summarise([5.0, 5.0, 5.1, 28.0, 5.1, 5.0])
    assert stalled.time_us == pytest.approx(calm.time_us, rel=0.03)


def test_spread_is_half_the_interquartile_range_over_the_median():
    assert summarise([0.0, 10.0, 11.0, 12.0, 13.0, 14.0]).spread == pytest.approx(1 / 12, abs=1e-3)
    assert summarise([5.0]).spread == 0.0


@pytest.mark.parametrize(("l2_bytes", "flushed"), [(50 << 20, 100 << 20), (0, 128 << 20)])
def test_twice_the_l2_is_flushed_and_128_mib_if_its_size_is_unknown(l2_bytes, flushed):
    assert LateTimer(torch.device("cpu"), l2_bytes)._flush_buffer().nbytes == flushed


class LateTimer(CudaTimer):
    """A timer whose CPU is late unless the GPU sleeps long enough."""

    def __post_init__(self) -> None:
        self.enough = 3600.0

    def _sample(self, launches, sleep_s):
        return [5.0] * len(launches), [sleep_s >= self.enough] * len(launches), 0.0


def test_a_late_sample_is_repeated_with_a_longer_delay():
    timer = LateTimer(torch.device("cpu"), 0)
    timer.enough = 2.2e-3
    samples: list[list[float]] = [[], []]
    timer._batch([print, print], [0, 1], samples)
    assert samples == [[5.0], [5.0]]
    assert timer.stalled == 6


def test_a_cpu_that_is_always_late_is_an_error():
    with pytest.raises(DiodeError, match="keep ahead"):
        LateTimer(torch.device("cpu"), 0)._batch([print], [0], [[]])


class NoisyTimer(CudaTimer):
    """Kernels with known times, measured with noise and a clock of 32 ns."""

    def __post_init__(self) -> None:
        self._random, self._noise = random.Random(self.seed), random.Random(self.seed + 1)

    def _sample(self, launches, sleep_s):
        times = [launch * (1 + self._noise.gauss(0, 0.03)) for launch in launches]
        return [round(time / 0.032) * 0.032 for time in times], [True] * len(times), 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_refined_best_of_many_is_unbiased(seed):
    source = random.Random(seed)
    true = [5 * (1 + abs(source.gauss(0, 0.15))) for _ in range(400)]
    timer = NoisyTimer(torch.device("cpu"), 0, seed)
    first = timer.measure(true)
    refined = timer.refine(true, first, always=[399])
    plain_error = min(m.time_us for m in first) / min(true) - 1
    best = min(range(400), key=lambda i: refined[i].time_us)
    assert plain_error < -0.006, "without refining, the minimum is too low"
    assert abs(refined[best].time_us / min(true) - 1) < 0.006
    assert true[best] / min(true) < 1.006
    assert refined[399].repeats == refined[best].repeats
    far = int(np.argmax(true))
    assert refined[far] == first[far], "kernels far behind keep their first time"
