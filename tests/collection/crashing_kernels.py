"""Sweeps on the CPU whose Triton candidates run ATen or end the process, or that wait."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelSpec
from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.kernels.outcome import CompileOutcome
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.collection.timers.cpu_load import UnwatchedCpu
from torch_diode.collection.timers.timer import Launch
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape


class CrashingLauncher(Launcher):
    """Launches ATen for every kernel, except for those that crash."""

    def __init__(self, launcher: Launcher, endings: Mapping[int, str]) -> None:
        super().__init__(launcher._library)
        self._endings = endings

    def bind(self, spec: KernelSpec, tensors: Operands) -> Launch:
        ending = self._endings.get(spec.config.block_m)
        if ending == "kill":
            return lambda: os.kill(os.getpid(), signal.SIGKILL)
        if ending == "raise":
            return _illegal_access
        return tensors.aten()


def _illegal_access() -> None:
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


@dataclass(frozen=True)
class CrashingSettings(TimingSettings):
    """`endings`: how kernels of a BLOCK_M end; `starts`: a file with a byte per process start."""

    endings: Mapping[int, str] = ()  # type: ignore[assignment]
    starts: str = ""

    def sweep(self, outcomes: Mapping[KernelSpec, CompileOutcome], seed: int) -> Sweep:
        with open(self.starts, "ab") as stream:  # noqa: PTH123
            stream.write(b"x")
        sweep = super().sweep(outcomes, seed)
        sweep.timer = CpuTimer(seed, cache_bytes=2048, watch=UnwatchedCpu())
        sweep.launcher = CrashingLauncher(sweep.launcher, self.endings)
        return sweep


@dataclass(frozen=True)
class InterruptedSettings(TimingSettings):
    """`before` is called with each problem in the timing process, before it is timed."""

    before: Callable[[MMShape], object] = field(kw_only=True)

    def sweep(self, outcomes: Mapping[KernelSpec, CompileOutcome], seed: int) -> Sweep:
        sweep = super().sweep(outcomes, seed)
        original = sweep.time

        def time(problem: MMShape, candidates: Candidates) -> Dataset:
            self.before(problem)
            return original(problem, candidates)

        sweep.time = time  # type: ignore[method-assign]
        return sweep
