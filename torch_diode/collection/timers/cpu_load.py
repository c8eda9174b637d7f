"""Watch over a CPU while kernels are timed: other programs, stolen time, a lower clock, a sleep.

Threads of a kernel wait for each other at barriers, so one busy core elsewhere makes a kernel many
times slower. Samples of such a moment are discarded, never averaged in.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torch_diode.collection.devices import BUSY_CPU

_STAT = Path("/proc/stat")
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_IDLE_FIELDS = (3, 4)
"""Positions of idle and iowait among the times of /proc/stat."""
_GUEST_FIELD = 8
"""Time of guests, which is counted as user time already."""
_LEAST_FOREIGN_S = 0.03
"""Three ticks: the system counts in hundredths of a second."""
_FOREIGN_SHARE = 0.1
_LEAST_WINDOW_S = 0.1
_LONGEST_SLEEP_S = 0.5
_SLOWER = 1.25
_REMEMBERED = 64
_REFERENCE_SIZES = (96, 384, 384)


@dataclass(frozen=True)
class _Clocks:
    """Seconds at a moment: wall clock, the system's monotonic clock, all CPUs busy or stolen, this
    process."""

    wall: float
    monotonic: float
    busy: float
    own: float


class CpuWatch:
    """Tells whether the CPU was this process's own since the last check."""

    def __init__(self) -> None:
        m, n, k = _REFERENCE_SIZES
        a, b = torch.ones(m, k), torch.ones(k, n)
        self._reference: Callable[[], Any] = lambda: torch.mm(a, b)
        self._known: deque[float] = deque(maxlen=_REMEMBERED)
        self._since = _clocks()
        for _ in range(8):
            self._known.append(self._reference_s())
        self.reason = ""
        """What the last check found."""

    def disturbed(self) -> bool:
        """True if samples since the last check are not to be trusted."""
        self.reason = self._slow_reference() or self._foreign_load()
        return bool(self.reason)

    def _slow_reference(self) -> str:
        """Compare a fixed product with its usual time: a lower clock, a busy neighbour."""
        usual = statistics.median(self._known)
        taken = min(self._reference_s(), self._reference_s())
        self._known.append(taken)
        if taken > _SLOWER * usual:
            return f"a fixed product takes {taken / usual:.1f} times its usual time"
        return ""

    def _reference_s(self) -> float:
        start = time.perf_counter()
        self._reference()
        return time.perf_counter() - start

    def _foreign_load(self) -> str:
        """Compare the time all CPUs were busy with this process's; a window that is too short to
        tell is looked at together with the next one."""
        now, since = _clocks(), self._since
        elapsed = now.monotonic - since.monotonic
        if abs(now.wall - since.wall - elapsed) > _LONGEST_SLEEP_S:
            self._since = now
            return "the machine slept"
        if elapsed < _LEAST_WINDOW_S:
            return ""
        self._since = now
        foreign = (now.busy - since.busy) - (now.own - since.own)
        if foreign > _LEAST_FOREIGN_S + _FOREIGN_SHARE * elapsed:
            return f"other programs use {foreign / elapsed:.1f} cores"
        return ""

    def restart(self) -> None:
        """Forget the time since the last check, after waiting for the machine to calm down."""
        self._since = _clocks()


class UnwatchedCpu(CpuWatch):
    """Discards nothing, for runs that must end on a busy machine: candidates are timed in turn, so
    that load meets all of them."""

    def disturbed(self) -> bool:
        """Never."""
        return False


def usual_watch() -> CpuWatch:
    """A watch; with the environment variable one that discards nothing."""
    return UnwatchedCpu() if os.environ.get(BUSY_CPU) else CpuWatch()


def _clocks() -> _Clocks:
    return _Clocks(time.time(), time.monotonic(), _busy_s(), time.process_time())


def _busy_s() -> float:
    """Seconds all CPUs were busy or stolen by another virtual machine; 0 where it is not known."""
    try:
        with _STAT.open() as file:
            fields = file.readline().split()[1:]
    except OSError:
        return 0.0
    busy = [int(f) for i, f in enumerate(fields) if i not in _IDLE_FIELDS and i < _GUEST_FIELD]
    return sum(busy) / _TICKS_A_SECOND
