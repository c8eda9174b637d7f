"""Benchmark of the few best candidates of a frozen linear, for max-autotune.

Inductor would time MKL's packed weight against one kernel of its C++ template, warm and in turn.
Here the candidates that a heuristic names are timed as a collection times them, before torch packs
the weight, so that the fastest decides what it is packed for.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from torch_diode._bounded_cache import BoundedCache
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.collection.timers.cpu_load import UnwatchedCpu
from torch_diode.integration.cpu.build import build
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_CACHED_LINEARS = 256
_measured: BoundedCache[tuple[MMShape, Hardware], dict[str, float]] = BoundedCache(_CACHED_LINEARS)


def order_by_time(
    problem: MMShape, candidates: Candidates, rows: Sequence[int], hardware: Hardware
) -> list[int]:
    """The rows whose candidates ran and gave a right result, fastest first.

    Equal linears of a process, such as those of equal layers, are timed once.
    """
    chosen = candidates.take(np.asarray(rows))
    names = [str(candidate) for candidate in chosen]
    known = _measured.get((problem, hardware)) or {}
    if not known.keys() >= set(names):
        # On a thread of its own: on the compiling thread every new tensor would be a fake one.
        with ThreadPoolExecutor(1, "torch-diode-benchmark") as thread:
            times = thread.submit(_time, problem, chosen, hardware).result()
        known = _measured[problem, hardware] = dict(zip(names, times, strict=True))
    timed = [(known[name], row) for name, row in zip(names, rows, strict=True)]
    return [row for time_us, row in sorted(timed) if time_us < np.inf]


def _time(problem: MMShape, candidates: Candidates, hardware: Hardware) -> list[float]:
    timer = CpuTimer(0, hardware.l3_bytes, UnwatchedCpu())
    kernels = CpuKernels(build, hardware.threads)
    sweep = Sweep(hardware.name, kernels, timer, {}, threads=hardware.threads)
    return [
        timing.time_us if timing.status == "ok" and timing.time_us else float("inf")
        for timing in sweep.time(problem, candidates)
    ]
