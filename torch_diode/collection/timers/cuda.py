"""Timer for CUDA kernels: execution time with a cold L2 and without launch cost.

The CPU is kept ahead of the GPU's queue: the GPU sleeps first, then for each repetition the L2 is
flushed, an event recorded, the kernel launched, an event recorded. The flush takes about as long as
queueing all this, and the sleep covers what the CPU falls behind. Each sample is checked: if the
GPU had reached the first event by the time the launch returned, the measurement may include a wait
for the CPU, and the sample is discarded.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from torch_diode.collection.timers.queue_delay import QueueDelay
from torch_diode.collection.timers.timer import Launch, Timer
from torch_diode.types.errors import DiodeError

_CYCLES_A_SECOND = 1.8e9
"""Approximate for any GPU; the effect of a sleep is measured and the next one adjusted."""
_DEFAULT_L2_BYTES = 64 << 20
"""More than most chips have."""
_MOST_ATTEMPTS = 100
_MOST_IN_FLIGHT = 300
"""Kernels queued before the host waits; the driver's own queue holds about a thousand launches."""


@dataclass
class CudaTimer(Timer):
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
