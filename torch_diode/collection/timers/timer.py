"""What timers of all devices share: which kernels are timed how often, and what a time is."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Launch = Callable[[], Any]
Rounds = Sequence[tuple[float, int]]

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


class Timer(ABC):
    """Times kernels of one device, many at a time; `stalled` counts discarded samples."""

    device: torch.device
    stalled: int
    near = 0.25
    """Part behind the fastest up to which kernels are refined: a median of three is sometimes a
    fifth too high."""
    narrows = True
    """Whether refining leaves out those that turn out to be behind."""

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
            times = [self._expected(s) for s in samples]
            limit = close * min(times)
            near = [i for i, expected in enumerate(times) if expected <= limit]
            affordable = self._affordable(repeats, sum(times[i] for i in near))
            self._rounds(launches, near, affordable, samples)
        return [self.summarise(s) for s in samples]

    def refine(
        self,
        launches: Sequence[Launch],
        first: Sequence[Measurement],
        always: Sequence[int] = (),
        band: float = 0.005,
    ) -> list[Measurement]:
        """Time the fastest kernels again until the best time is known to within `band`.

        The minimum of many noisy times is too low, so `first` only selects the kernels: all `near`
        the best, and those in `always`; the new times are of new samples alone. After each round,
        kernels clearly behind drop out if the timer `narrows`. `band` is half the width of the best
        time's 95% interval, relative to it.
        """
        if not launches:
            return []
        samples: list[list[float]] = [[] for _ in launches]
        near = _within(1 + self.near, {i: m.time_us for i, m in enumerate(first)})
        members = sorted({*near, *always})
        for repeats in _REFINING:
            self._rounds(launches, members, repeats, samples)
            refined = {i: self.refined(samples[i]) for i in members}
            best = min(refined.values(), key=lambda m: m.time_us)
            noise = half_width(best)
            if noise <= band:
                break
            if not self.narrows:
                continue
            behind = 1 + max(_TIED, 2 * noise)
            times = {i: m.time_us for i, m in refined.items()}
            members = sorted({*_within(behind, times)[:_MOST_TIED], *always})
        return [self.refined(s) if s else m for s, m in zip(samples, first, strict=True)]

    def repeat(self, launches: Sequence[Launch], repeats: int) -> list[list[float]]:
        """Take `repeats` interleaved samples of every kernel."""
        samples: list[list[float]] = [[] for _ in launches]
        self._rounds(launches, list(range(len(launches))), repeats, samples)
        return samples

    def _expected(self, samples: Sequence[float]) -> float:
        """The time by which a kernel is timed again, or not."""
        return statistics.median(samples)

    def _affordable(self, repeats: int, round_us: float) -> int:
        """Repetitions of a round that takes this long: as many as were asked for."""
        return repeats

    def summarise(self, samples: Sequence[float]) -> Measurement:
        """A time from a few samples."""
        return summarise(samples)

    def refined(self, samples: Sequence[float]) -> Measurement:
        """A time from many samples."""
        return middle_mean(samples)

    def keep_cached(self, warm_up: Callable[[], Any]) -> None:
        """Run this before each round: it fills the caches that are warm in real use."""
        raise NotImplementedError

    @abstractmethod
    def _rounds(
        self,
        launches: Sequence[Launch],
        members: Sequence[int],
        repeats: int,
        samples: list[list[float]],
    ) -> None:
        """Add `repeats` samples of each member, interleaved in a new order each time."""


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
