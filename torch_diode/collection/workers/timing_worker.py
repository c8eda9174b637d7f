"""What a timing process does: one device, a sweep on it, and an answer to each order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from torch_diode.collection.kernels.compile import CompileOutcome
from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelLibrary, KernelSpec
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.workers.pool import WORKING, ProgressMarker
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

CPU = "cpu"


@dataclass(frozen=True)
class TimingSettings:
    """What every timing process of a run is made with."""

    library: KernelLibrary
    hardware: Hardware
    releases: Mapping[str, str]
    seed: int = 0
    band: float | None = None

    def sweep(self, outcomes: Mapping[KernelSpec, CompileOutcome], seed: int) -> Sweep:
        """The sweep on the device this process sees; called once, in the timing process."""
        if self.hardware.kind == CPU:
            # One thread: processes beside each other must not share cores, and a forked process
            # cannot use the threads of an OpenMP that its parent has started.
            torch.set_num_threads(1)
            timer: CudaTimer = CpuTimer(seed)
        else:
            device = torch.device("cuda", torch.cuda.current_device())
            timer = CudaTimer(device, self.hardware.l2_bytes, seed)
        return Sweep(
            self.hardware.name,
            Launcher(self.library),
            timer,
            self.releases,
            outcomes,
            self.hardware.shared_memory_per_block,
            seed,
            self.band,
        )


@dataclass(frozen=True)
class TimingRequest:
    """A problem to time.

    `news` are outcomes the process does not know yet, of kernels that cannot be timed. A problem
    that ended a process before comes back `careful`: each candidate from `start` on is tried
    alone first, so that the mark tells which one it is; `failed` are those found so far.
    """

    problem: MMShape
    candidates: Candidates
    news: tuple[CompileOutcome, ...] = ()
    careful: bool = False
    start: int = 0
    failed: tuple[int, ...] = ()


@dataclass(frozen=True)
class TimingResult:
    """A problem's timings, the seconds they took and the samples thrown away."""

    dataset: Dataset
    seconds: float
    stalled: int


class TimingWorker:
    """Answers orders, in a process that may end at any of them."""

    def __init__(self, setting: TimingSettings, mark: ProgressMarker, seed: int) -> None:
        self._outcomes: dict[KernelSpec, CompileOutcome] = {}
        self._sweep = setting.sweep(self._outcomes, seed)
        self._mark = mark
        self._cuda = self._sweep.timer.device.type == "cuda"

    def answer(self, order: TimingRequest) -> TimingResult:
        """Time a problem; an error of the GPU passes, and ends the process."""
        start, stalled = time.monotonic(), self._sweep.timer.stalled
        self._outcomes.update({outcome.spec: outcome for outcome in order.news})
        try:
            if order.careful:
                self._try_each(order)
            dataset = self._time(order)
        except torch.OutOfMemoryError as fault:
            reason = str(fault).partition(". ")[0]
            raise MissingPartError(
                f"{order.problem}: {reason}; end what else uses the GPU and run the same command "
                "again"
            ) from None
        except NotImplementedError as fault:
            # What ATen says where its library has no kernel for a dtype on this device.
            raise MissingPartError(
                f"{order.problem}: this device does not run it ({fault}); choose another with "
                "--dtypes"
            ) from None
        return TimingResult(dataset, time.monotonic() - start, self._sweep.timer.stalled - stalled)

    def _try_each(self, order: TimingRequest) -> None:
        """Each candidate once, alone and to its end."""
        band, self._sweep.band = self._sweep.band, None
        for number in range(order.start, len(order.candidates)):
            if number not in order.failed:
                self._mark.set(number)
                self._sweep.time(order.problem, order.candidates.take(np.array([number])))
                if self._cuda:
                    torch.cuda.synchronize()
        self._mark.set(WORKING)
        self._sweep.band = band

    def _time(self, order: TimingRequest) -> Dataset:
        keep = np.ones(len(order.candidates), dtype=bool)
        keep[list(order.failed)] = False
        parts = [self._sweep.time(order.problem, order.candidates.take(keep))] if any(keep) else []
        if order.failed:
            parts.append(self._failures(order))
        return Dataset.merge(parts)

    def _failures(self, order: TimingRequest) -> Dataset:
        releases = self._sweep.releases
        return Dataset.from_timings(
            Timing(
                self._sweep.hardware,
                order.problem,
                order.candidates[number],
                None,
                "failed",
                repeats=0,
                torch=releases.get("torch", ""),
                triton=releases.get("triton", ""),
            )
            for number in order.failed
        )


def timing_worker_on(
    setting: TimingSettings, device: str, number: int
) -> Callable[[ProgressMarker], Callable[[TimingRequest], TimingResult]]:
    """The work of the process that times on a device.

    `device` is what CUDA_VISIBLE_DEVICES should say, nothing to leave it as it is.
    """

    def work(mark: ProgressMarker) -> Callable[[TimingRequest], TimingResult]:
        if device and device != CPU:
            os.environ["CUDA_VISIBLE_DEVICES"] = device
        return TimingWorker(setting, mark, setting.seed + number).answer

    return work
