"""The time a kernel takes on the GPU: no launch cost in it, cold L2, and nothing else.

The GPU's queue is kept ahead of the CPU: it is put to sleep, then for each repetition the L2 is
flushed, an event recorded, the kernel launched, an event recorded. The flush takes about as long as
queueing all this, and the sleep what the CPU falls behind, so it stays ahead. Whether it did is
checked for every sample: if the GPU had already reached the first event by the time the launch
returned, the wait for the CPU may be inside the measurement, and the sample is thrown away.
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
"""Roughly, of any GPU: what a sleep was good for is measured, and the next one made of that."""
_USUAL_L2_BYTES = 64 << 20
"""More than most chips have."""
_MOST_ATTEMPTS = 100
_MOST_IN_FLIGHT = 300
"""Kernels queued before the host waits; the driver's own queue holds about a thousand launches."""


_NEAR = 0.25
"""A median of three is now and then a fifth too high; nothing that close is ruled out by it."""
_TIED = 0.02
_MOST_TIED = 48
_REFINING = (15, 25, 40, 80, 80, 80, 80)
"""Samples a round, 400 in all: enough for a spread of five percent."""


@dataclass(frozen=True)
class Measurement:
    """What one kernel took: the median of its samples, how they spread, and how many there were."""

    time_us: float
    spread: float
    repeats: int


@dataclass
class CudaTimer:
    """Times kernels of one device, many at a time.

    `stalled` counts samples thrown away because the CPU fell behind.
    """

    device: torch.device
    l2_bytes: int
    """0 where it is not known."""
    seed: int = 0
    stalled: int = 0
    head_start: QueueDelay = field(default_factory=QueueDelay)

    def __post_init__(self) -> None:
        self._flush = self._room()
        self._events = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(_MOST_IN_FLIGHT)
        ]
        self._random = random.Random(self.seed)

    def _room(self) -> torch.Tensor:
        """What is written to flush the L2: twice what it holds, never nothing."""
        size = 2 * (self.l2_bytes or _USUAL_L2_BYTES)
        return torch.empty(size // 4, dtype=torch.int32, device=self.device)

    def measure(
        self, launches: Sequence[Launch], rounds: Rounds = ((1.5, 3), (1.15, 6))
    ) -> list[Measurement]:
        """Every kernel once, then those within so much of the fastest so many times more.

        The closer to the fastest, the more repetitions: that is where the order matters. They are
        spread over the whole measurement, in a new order each time, so that a drifting clock or a
        warm neighbour reaches all of them alike.
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
        """The fastest timed again, until the best one's time is known to within `band`.

        The minimum of many noisy times is too low, so what `first` says only decides who is timed
        again: all within a quarter of the best, and those in `always`. New samples alone make the
        new times. From one round to the next, those clearly behind drop out; `band` is half the
        width of the best time's 95% interval, relative to it.
        """
        if not launches:
            return []
        samples: list[list[float]] = [[] for _ in launches]
        near = _within(1 + _NEAR, {i: m.time_us for i, m in enumerate(first)})
        members = sorted({*near, *always})
        for repeats in _REFINING:
            self._rounds(launches, members, repeats, samples)
            settled = {i: settle_clock(samples[i]) for i in members}
            best = min(settled.values(), key=lambda m: m.time_us)
            noise = half_width(best)
            if noise <= band:
                break
            behind = 1 + max(_TIED, 2 * noise)
            times = {i: m.time_us for i, m in settled.items()}
            members = sorted({*_within(behind, times)[:_MOST_TIED], *always})
        return [
            settle_clock(taken) if taken else m for taken, m in zip(samples, first, strict=True)
        ]

    def repeat(self, launches: Sequence[Launch], repeats: int) -> list[list[float]]:
        """All samples of every kernel, interleaved."""
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
        """One sample of each; those the CPU was late for are taken again."""
        todo = list(batch)
        for attempt in itertools.count():
            if not todo:
                return
            if attempt == _MOST_ATTEMPTS:
                raise DiodeError(
                    f"timer: got {len(todo)} kernels the CPU was late for {attempt} times; "
                    "expected it to keep ahead of the GPU; free some cores"
                )
            sleep_s = self.head_start.seconds(len(todo), attempt)
            times, clean, left_s = self._sample([launches[i] for i in todo], sleep_s)
            self.head_start = self.head_start.after(sleep_s, clean, left_s)
            self.stalled += sum(not ok for ok in clean)
            for index, taken, ok in zip(todo, times, clean, strict=True):
                if ok:
                    samples[index].append(taken)
            todo = [index for index, ok in zip(todo, clean, strict=True) if not ok]

    def _sample(
        self, launches: Sequence[Launch], sleep_s: float
    ) -> tuple[list[float], list[bool], float]:
        """Each one's time, whether the CPU was ahead, and for how long the GPU still went on after
        the last was queued, that one's own time apart."""
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


def settle_clock(samples: Sequence[float]) -> Measurement:
    """Mean of the middle half, and its spread as `summarise` gives it.

    The clock ticks every 32 ns, so a median of five microseconds is only good to half a percent
    however many samples it has; a mean is not so limited, and its middle half has no outliers.
    """
    taken = sorted(samples)
    quarter = len(taken) // 4
    middle = statistics.fmean(taken[quarter : len(taken) - quarter])
    low, _, high = statistics.quantiles(taken, n=4, method="inclusive")
    return Measurement(round(middle, 4), round((high - low) / 2 / middle, 5), len(taken))


def half_width(measured: Measurement) -> float:
    """Half the 95% interval of a settled time, relative: of normal samples, half the
    interquartile range is 0.674 standard deviations, and the mean of the middle half has 1.09
    times a mean's error."""
    return 1.96 * 1.09 * measured.spread / 0.6745 / math.sqrt(measured.repeats)


def _within(factor: float, times: Mapping[int, float]) -> list[int]:
    """Those within a factor of the fastest, fastest first."""
    limit = factor * min(times.values())
    return sorted((i for i in times if times[i] <= limit), key=times.__getitem__)


def summarise(samples: Sequence[float]) -> Measurement:
    """Median, and half the interquartile range over it; the first, single look at a kernel counts
    only where there is no other, since it may have paid for loading the kernel."""
    taken = samples[1:] if len(samples) > 2 else samples
    middle = statistics.median(taken)
    spread = 0.0
    if len(taken) > 2:
        low, _, high = statistics.quantiles(taken, n=4, method="inclusive")
        spread = (high - low) / 2 / middle
    return Measurement(round(middle, 3), round(spread, 4), len(taken))
