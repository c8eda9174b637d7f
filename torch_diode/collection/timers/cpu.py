"""Timer for CPU kernels: a call as the compiled graph makes it, with its weight in memory.

In a model the activations of a matmul are in the cache, its weights come from memory, and the code
that calls it has run a moment ago. So before each round, in which every kernel runs once in a new
order, the caches are flushed, and then the calls are run on tiny operands and the
activations read. A time is the mean of the lower half of the samples: whatever disturbs a CPU makes
it slower. Samples of a moment when the CPU was not this process's alone are discarded.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_diode.collection.timers.cpu_load import CpuWatch, usual_watch
from torch_diode.collection.timers.timer import Launch, Measurement, Rounds, Timer
from torch_diode.types.errors import DiodeError

_DEFAULT_CACHE_BYTES = 32 << 20
_FLUSHED = 1.25
"""Bytes read to flush a cache, over its size."""
_MOST_FLUSHED = 64 << 20
"""Bytes read at most: the shared cache of a large server holds the weights of most models, which
then come from there, and not from memory."""
_WINDOW_S = 0.1
"""Length of a group of rounds that is kept or discarded as a whole."""
_ROUNDS_US = 80_000
"""Time for the repetitions of a round."""
_FEWEST = 2
_MOST_DISCARDED = 40
_LONGEST_PAUSE_S = 2.0
_LOWEST = 0.1
"""Share of the samples below which a time is an outlier too."""


class CpuTimer(Timer):
    """Times calls on this machine's CPU, with the threads torch uses."""

    near = 3.0
    narrows = False
    """What runs between two calls of a kernel decides what of its weight is left in the caches:
    times are comparable only of kernels that ran in the same rounds."""

    def __init__(self, seed: int = 0, cache_bytes: int = 0, watch: CpuWatch | None = None) -> None:
        self.device = torch.device("cpu")
        self.stalled = 0
        self._random = random.Random(seed)
        size = min(int(_FLUSHED * (cache_bytes or _DEFAULT_CACHE_BYTES)), _MOST_FLUSHED)
        # Ones, since pages of zeros that nothing has written are all the same page.
        self._flush = torch.ones(max(size // 4, 1))
        self._watch = watch or usual_watch()
        self._warm_up: Callable[[], Any] = _nothing

    def keep_cached(self, warm_up: Callable[[], Any]) -> None:
        """Run this after each flush: the code it runs and what it reads is in the cache then."""
        self._warm_up = warm_up

    def measure(
        self, launches: Sequence[Launch], rounds: Rounds = ((math.inf, 2), (4.0, 4), (1.3, 8))
    ) -> list[Measurement]:
        """Time every call three times, one of which may be disturbed, then those near the fastest
        again; long calls, whose times vary less, fewer times."""
        return super().measure(launches, rounds)

    def _expected(self, samples: Sequence[float]) -> float:
        """The least: a kernel must not be left out because most of its few samples were
        disturbed."""
        return min(samples)

    def _affordable(self, repeats: int, round_us: float) -> int:
        """Repetitions of a round that takes this long."""
        return max(min(repeats, int(_ROUNDS_US / round_us)), _FEWEST)

    def summarise(self, samples: Sequence[float]) -> Measurement:
        """Mean of the lower half of the samples."""
        return lower_mean(samples)

    def refined(self, samples: Sequence[float]) -> Measurement:
        """The same: the samples are as fine as the clock."""
        return lower_mean(samples)

    def _rounds(
        self,
        launches: Sequence[Launch],
        members: Sequence[int],
        repeats: int,
        samples: list[list[float]],
    ) -> None:
        left = repeats
        discarded = 0
        while left:
            taken, done = self._window(launches, members, left)
            if self._watch.disturbed():
                discarded += 1
                self.stalled += len(taken)
                self._pause(discarded)
                continue
            discarded = 0
            left -= done
            for index, microseconds in taken:
                samples[index].append(microseconds)

    def _pause(self, discarded: int) -> None:
        """Wait for the machine to calm down; give up after many windows without success."""
        if discarded > _MOST_DISCARDED:
            raise DiodeError(
                f"timer: got a busy machine {discarded} times in a row ({self._watch.reason}); "
                "expected a CPU with nothing else to do; end other programs and run the same "
                "command again"
            )
        time.sleep(min(0.02 * 2.0**discarded, _LONGEST_PAUSE_S))
        self._watch.restart()

    def _window(
        self, launches: Sequence[Launch], members: Sequence[int], most: int
    ) -> tuple[list[tuple[int, float]], int]:
        """Up to `most` rounds, and how many it were: as many as start within a window's time."""
        taken: list[tuple[int, float]] = []
        clock, end = time.perf_counter_ns, time.perf_counter() + _WINDOW_S
        done = 0
        while done < most and time.perf_counter() < end:
            done += 1
            self._flush.sum()
            self._warm_up()
            for index in self._random.sample(list(members), len(members)):
                launch = launches[index]
                start = clock()
                launch()
                # At least one tick: a coarse clock may not advance during a call.
                taken.append((index, max(clock() - start, 1) / 1000))
        return taken, done


def lower_mean(samples: Sequence[float]) -> Measurement:
    """Mean of the lower half of the samples without the lowest tenth, and the spread of all: half
    their interquartile range relative to it."""
    taken = sorted(samples)
    low = taken[int(len(taken) * _LOWEST) : (len(taken) + 1) // 2]
    mean = statistics.fmean(low)
    spread = 0.0
    if len(taken) > 2:
        first, _, third = statistics.quantiles(taken, n=4, method="inclusive")
        spread = (third - first) / 2 / mean
    return Measurement(round(mean, 3), round(spread, 4), len(taken))


def _nothing() -> None:
    pass
