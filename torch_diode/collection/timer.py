"""The time a kernel takes on the GPU: no launch cost in it, cold L2, and nothing else.

The GPU's queue is kept ahead of the CPU: it is put to sleep, then for each repetition the L2 is
flushed, an event recorded, the kernel launched, an event recorded. The flush takes longer than a
launch, so the CPU stays ahead. Whether it did is checked for every sample: if the GPU had already
reached the first event by the time the launch returned, the wait for the CPU may be inside the
measurement, and the sample is thrown away.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_diode.types.errors import DiodeError

Launch = Callable[[], Any]
Rounds = Sequence[tuple[float, int]]

_SLEEP_CYCLES = 600_000
"""About a third of a millisecond: the head start the CPU gets before each batch."""
_MOST_DOUBLINGS = 7
_MOST_ATTEMPTS = 100
_MOST_IN_FLIGHT = 300
"""Kernels queued before the host waits; the driver's own queue holds about a thousand launches."""


@dataclass(frozen=True)
class Measured:
    """What one kernel took: the median of its samples, how they spread, and how many there were."""

    time_us: float
    spread: float
    repeats: int


@dataclass
class Timer:
    """Times kernels of one device, many at a time.

    `stalled` counts samples thrown away because the CPU fell behind.
    """

    device: torch.device
    flush_bytes: int
    seed: int = 0
    stalled: int = 0
    sampled: int = 0

    def __post_init__(self) -> None:
        self._flush = torch.empty(self.flush_bytes // 4, dtype=torch.int32, device=self.device)
        self._events = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(_MOST_IN_FLIGHT)
        ]
        self._random = random.Random(self.seed)

    def measure(
        self, launches: Sequence[Launch], rounds: Rounds = ((1.5, 3), (1.15, 6))
    ) -> list[Measured]:
        """Every kernel once, then those within so much of the fastest so many times more.

        The closer to the fastest, the more repetitions: that is where the order matters. They are
        spread over the whole measurement, in a new order each time, so that a drifting clock or a
        warm neighbour reaches all of them alike.
        """
        samples: list[list[float]] = [[] for _ in launches]
        self._rounds(launches, range(len(launches)), 1, samples)
        for close, repeats in rounds:
            medians = [statistics.median(s) for s in samples]
            limit = close * min(medians)
            near = [i for i, median in enumerate(medians) if median <= limit]
            self._rounds(launches, near, repeats, samples)
        return [summarise(s) for s in samples]

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
        """One sample of each; those the CPU was late for are taken again, with twice the head
        start each time, so that a slow launch catches up in the end."""
        todo = list(batch)
        for attempt in itertools.count():
            if not todo:
                return
            if attempt == _MOST_ATTEMPTS:
                raise DiodeError(
                    f"timer: got {len(todo)} kernels the CPU was late for {attempt} times; "
                    "expected it to keep ahead of the GPU; free some cores"
                )
            cycles = _SLEEP_CYCLES << min(attempt, _MOST_DOUBLINGS)
            times, clean = self._sample([launches[i] for i in todo], cycles)
            self.sampled += len(todo)
            self.stalled += sum(not ok for ok in clean)
            for index, time, ok in zip(todo, times, clean, strict=True):
                if ok:
                    samples[index].append(time)
            todo = [index for index, ok in zip(todo, clean, strict=True) if not ok]

    def _sample(self, launches: Sequence[Launch], cycles: int) -> tuple[list[float], list[bool]]:
        flush, clean = self._flush, []
        pairs = self._events[: len(launches)]
        torch.cuda._sleep(cycles)
        for launch, (start, end) in zip(launches, pairs, strict=True):
            flush.zero_()
            start.record()
            launch()
            end.record()
            clean.append(not start.query())
        torch.cuda.synchronize(self.device)
        return [start.elapsed_time(end) * 1000 for start, end in pairs], clean


def summarise(samples: Sequence[float]) -> Measured:
    """Median, and half the interquartile range over it; the first, single look at a kernel counts
    only where there is no other, since it may have paid for loading the kernel."""
    taken = samples[1:] if len(samples) > 2 else samples
    middle = statistics.median(taken)
    spread = 0.0
    if len(taken) > 2:
        low, _, high = statistics.quantiles(taken, n=4, method="inclusive")
        spread = (high - low) / 2 / middle
    return Measured(round(middle, 3), round(spread, 4), len(taken))
