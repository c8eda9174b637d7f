"""Timer for CUDA kernels: execution time with a cold L2 and without launch cost.

The CPU is kept ahead of the GPU's queue: the GPU sleeps first, then for each repetition the L2 is
flushed, an event recorded, the kernel launched, an event recorded. The flush takes about as long as
queueing all this, and the sleep covers what the CPU falls behind. Each sample is checked: if the
GPU had reached the first event by the time the launch returned, the measurement may include a wait
for the CPU, and the sample is discarded.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_diode.collection.timers.queue_delay import QueueDelay
from torch_diode.types.errors import DiodeError

Launch = Callable[[], Any]
Rounds = Sequence[tuple[float, int]]

_CYCLES_A_SECOND = 1.8e9
"""Approximate for any GPU; the effect of a sleep is measured and the next one adjusted."""
_DEFAULT_L2_BYTES = 64 << 20
"""More than most chips have."""
_MOST_ATTEMPTS = 100
_MOST_IN_FLIGHT = 300
"""Kernels queued before the host waits; the driver's own queue holds about a thousand launches."""


_NEAR = 0.25
"""A median of three is sometimes a fifth too high, so candidates this close stay in."""
_TIED = 0.02
_MOST_TIED = 48
_REFINING = (15, 25, 40, 80, 80, 80, 80)
"""Samples per round, 400 in all: enough for a spread of five percent."""


@dataclass(frozen=True)
class Measurement:
    """Time of one kernel: the median of its samples, their spread and their number."""

    time_us: float
    spread: float
    repeats: int


@dataclass
class CudaTimer:
    """Times kernels of one device, many at a time.

    `stalled` counts samples discarded because the CPU fell behind.
    """

    device: torch.device
    l2_bytes: int
    """0 where it is not known."""
    seed: int = 0
    stalled: int = 0
    queue_delay: QueueDelay = field(default_factory=QueueDelay)

    def __post_init__(self) -> None:
        self._flush = self._flush_buffer()
        self._events = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(_MOST_IN_FLIGHT)
        ]
        self._random = random.Random(self.seed)

    def _flush_buffer(self) -> torch.Tensor:
        """Buffer to overwrite in order to flush the L2: twice its size."""
        size = 2 * (self.l2_bytes or _DEFAULT_L2_BYTES)
        return torch.empty(size // 4, dtype=torch.int32, device=self.device)

    def measure(
        self, launches: Sequence[Launch], rounds: Rounds = ((1.5, 3), (1.15, 6))
    ) -> list[Measurement]:
        """Time every kernel once, then in each round those within a factor of the fastest again.

        The closer to the fastest, the more repetitions, since the order matters there. They are
        interleaved in a new order each time, so that clock drift affects all kernels alike.
        """
        if not launches:
            return []
        samples: list[list[float]] = [[] for _ in launches]
        self._rounds(launches, range(len(launches)), 1, samples)
        for close, repeats in rounds:
            medians = [statistics.median(s) for s in samples]
            limit = close * min(medians)
            near = [i for i, median in enumerate(medians) if median <= limit]
            self._rounds(launches, near, repeats, samples)
        return [summarise(s) for s in samples]

    def refine(
        self,
        launches: Sequence[Launch],
        first: Sequence[Measurement],
        always: Sequence[int] = (),
        band: float = 0.005,
    ) -> list[Measurement]:
        """Time the fastest kernels again until the best time is known to within `band`.

        The minimum of many noisy times is too low, so `first` only selects the kernels: all within
        a quarter of the best, and those in `always`; the new times are of new samples alone. After
        each round, kernels clearly behind drop out. `band` is half the width of the best time's 95%
        interval, relative to it.
        """
        if not launches:
            return []
        samples: list[list[float]] = [[] for _ in launches]
        near = _within(1 + _NEAR, {i: m.time_us for i, m in enumerate(first)})
        members = sorted({*near, *always})
        for repeats in _REFINING:
            self._rounds(launches, members, repeats, samples)
            refined = {i: middle_mean(samples[i]) for i in members}
            best = min(refined.values(), key=lambda m: m.time_us)
            noise = half_width(best)
            if noise <= band:
                break
            behind = 1 + max(_TIED, 2 * noise)
            times = {i: m.time_us for i, m in refined.items()}
            members = sorted({*_within(behind, times)[:_MOST_TIED], *always})
        return [middle_mean(taken) if taken else m for taken, m in zip(samples, first, strict=True)]

    def repeat(self, launches: Sequence[Launch], repeats: int) -> list[list[float]]:
        """Take `repeats` interleaved samples of every kernel."""
        samples: list[list[float]] = [[] for _ in launches]
        self._rounds(launches, list(range(len(launches))), repeats, samples)
        return samples

    def _rounds(
        self,
        launches: Sequence[Launch],
        members: Sequence[int],
        repeats: int,
        samples: list[list[float]],
    ) -> None:
        order: list[int] = []
        for _ in range(repeats):
            order += self._random.sample(members, len(members))
        for start in range(0, len(order), _MOST_IN_FLIGHT):
            self._batch(launches, order[start : start + _MOST_IN_FLIGHT], samples)

    def _batch(
        self, launches: Sequence[Launch], batch: Sequence[int], samples: list[list[float]]
    ) -> None:
        """Take one sample of each; repeat those the CPU was late for."""
        todo = list(batch)
        for attempt in itertools.count():
            if not todo:
                return
            if attempt == _MOST_ATTEMPTS:
                raise DiodeError(
                    f"timer: got {len(todo)} kernels the CPU was late for {attempt} times; "
                    "expected it to keep ahead of the GPU; free some cores"
                )
            sleep_s = self.queue_delay.seconds(len(todo), attempt)
            times, clean, left_s = self._sample([launches[i] for i in todo], sleep_s)
            self.queue_delay = self.queue_delay.after(sleep_s, clean, left_s)
            self.stalled += sum(not ok for ok in clean)
            for index, taken, ok in zip(todo, times, clean, strict=True):
                if ok:
                    samples[index].append(taken)
            todo = [index for index, ok in zip(todo, clean, strict=True) if not ok]

    def _sample(
        self, launches: Sequence[Launch], sleep_s: float
    ) -> tuple[list[float], list[bool], float]:
        """Time of each launch, whether the CPU was ahead, and how long the GPU was still busy after
        the last was queued, not counting the last kernel."""
        flush, clean = self._flush, []
        pairs = self._events[: len(launches)]
        torch.cuda._sleep(round(sleep_s * _CYCLES_A_SECOND))
        for launch, (start, end) in zip(launches, pairs, strict=True):
            flush.zero_()
            start.record()
            launch()
            end.record()
            clean.append(not start.query())
        queued = time.perf_counter()
        torch.cuda.synchronize(self.device)
        left_s = time.perf_counter() - queued
        times = [start.elapsed_time(end) * 1000 for start, end in pairs]
        return times, clean, max(left_s - times[-1] / 1e6, 0.0)


def middle_mean(samples: Sequence[float]) -> Measurement:
    """Mean of the middle half of the samples, with the spread as in `summarise`.

    The clock ticks every 32 ns, which limits a median of five microseconds to half a percent
    however many samples it has; the mean of the middle half is finer and has no outliers.
    """
    taken = sorted(samples)
    quarter = len(taken) // 4
    middle = statistics.fmean(taken[quarter : len(taken) - quarter])
    low, _, high = statistics.quantiles(taken, n=4, method="inclusive")
    return Measurement(round(middle, 4), round((high - low) / 2 / middle, 5), len(taken))


def half_width(measured: Measurement) -> float:
    """Half the relative 95% interval of a middle mean: for normal samples, half the interquartile
    range is 0.674 standard deviations, and a middle mean has 1.09 times a mean's error."""
    return 1.96 * 1.09 * measured.spread / 0.6745 / math.sqrt(measured.repeats)


def _within(factor: float, times: Mapping[int, float]) -> list[int]:
    """Indices within a factor of the fastest, fastest first."""
    limit = factor * min(times.values())
    return sorted((i for i in times if times[i] <= limit), key=times.__getitem__)


def summarise(samples: Sequence[float]) -> Measurement:
    """Median, and half the interquartile range relative to it; without the first sample, which may
    include loading the kernel, if there are more than two."""
    taken = samples[1:] if len(samples) > 2 else samples
    middle = statistics.median(taken)
    spread = 0.0
    if len(taken) > 2:
        low, _, high = statistics.quantiles(taken, n=4, method="inclusive")
        spread = (high - low) / 2 / middle
    return Measurement(round(middle, 3), round(spread, 4), len(taken))
