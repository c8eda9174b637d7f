"""GPU milliseconds of whole models, with several variants called in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

LATE = 4


def gpu_ms(
    ways: list[Callable[[], Any]], calls: int, rounds: int
) -> tuple[list[list[float]], list[int]]:
    """Milliseconds per call of each variant and round, and the number of rounds in which the GPU
    waited for the CPU.

    The GPU sleeps while calls are queued. If it woke before the last call was queued, the round is
    repeated with twice the sleep, a few times in all: a full queue waits in any case.
    """
    cycles = [_cycles(call, calls) for call in ways]
    longer, waited = [0] * len(ways), [0] * len(ways)
    taken: list[list[float]] = [[] for _ in ways]
    for turn in range(rounds):
        for number in sorted(range(len(ways)), reverse=turn % 2 == 1):
            ms, late = _round(ways[number], calls, cycles[number])
            while late and longer[number] < LATE:
                cycles[number], longer[number] = 2 * cycles[number], longer[number] + 1
                ms, late = _round(ways[number], calls, cycles[number])
            taken[number].append(ms)
            waited[number] += late
    return taken, waited


def _cycles(call: Callable[[], Any], calls: int) -> int:
    """Sleep cycles needed while the calls are queued."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    return int((time.perf_counter() - begun) * 4e9) + 1_000_000


def _round(call: Callable[[], Any], calls: int, cycles: int) -> tuple[float, bool]:
    """Milliseconds per call, and whether the GPU woke too early."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    torch.cuda._sleep(cycles)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    late = start.query()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / calls, late
