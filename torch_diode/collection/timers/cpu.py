"""Timer for the CPU: the vendor's kernel alone, by the wall clock.

With one candidate there is nothing to choose; it lets a collection run and be tested without a GPU.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import torch

from torch_diode.collection.kernels.library import KernelInfeasibleError, KernelLibrary
from torch_diode.collection.kernels.source import SourceKey, TemplateSource
from torch_diode.collection.timers.cuda import CudaTimer, Launch

_CACHE_BYTES = 16 << 20


class CpuTimer(CudaTimer):
    """The rounds of the GPU timer, with samples by the wall clock.

    A call on the CPU returns when its work is done, so no sample is discarded.
    """

    def __init__(self, seed: int = 0, cache_bytes: int = _CACHE_BYTES) -> None:
        super().__init__(torch.device("cpu"), cache_bytes, seed)

    def __post_init__(self) -> None:
        self._flush = self._flush_buffer()
        self._random = random.Random(self.seed)

    def _sample(
        self, launches: Sequence[Launch], sleep_s: float
    ) -> tuple[list[float], list[bool], float]:
        times = []
        for launch in launches:
            self._flush.zero_()
            start = time.perf_counter_ns()
            launch()
            # At least one tick: a coarse clock may not advance during a call.
            times.append(max(time.perf_counter_ns() - start, 1) / 1000)
        return times, [True] * len(times), sleep_s


def cpu_library() -> KernelLibrary:
    """A library without kernels, since Triton templates do not run on the CPU."""
    return KernelLibrary(_no_kernels, num_sms=0)


def _no_kernels(key: SourceKey) -> TemplateSource:
    raise KernelInfeasibleError(f"{key.template}: got the CPU; expected a GPU; time aten only")
