"""Timing worker: runs a sweep on one device and returns a result per request."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torch_diode.collection.devices import CPU
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.kernels.cpu import NO_MEMORY
from torch_diode.collection.kernels.launch import launcher_of
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.kernels.outcome import CompileOutcome
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.timer import Timer
from torch_diode.collection.workers.pool import WORKING, ProgressMarker
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing


@dataclass(frozen=True)
class TimingSettings:
    """Settings shared by all timing processes of a run."""

    library: KernelLibrary | CpuKernels
    hardware: Hardware
    releases: Mapping[str, str]
    seed: int = 0
    band: float | None = None

    def sweep(self, outcomes: Mapping[Any, CompileOutcome], seed: int) -> Sweep:
        """Create the sweep on the visible device; called once, in the timing process."""
        if self.hardware.kind == CPU:
            torch.set_num_threads(self.hardware.threads)
            timer: Timer = CpuTimer(seed, self.hardware.l3_bytes)
        else:
            device = torch.device("cuda", torch.cuda.current_device())
            timer = CudaTimer(device, self.hardware.l2_bytes, seed)
        return Sweep(
            self.hardware.name,
            launcher_of(self.library),
            timer,
            self.releases,
            outcomes,
            self.hardware.shared_memory_per_block,
            seed,
            self.band,
            self.hardware.threads,
        )


@dataclass(frozen=True)
class TimingRequest:
    """A problem to time.

    `unusable` are outcomes, new to the process, of kernels that cannot be timed. A problem that
    ended a process is sent again with `one_by_one`: each candidate from `start` on runs alone
    first, so that the progress marker identifies the one at fault; `failed` are those found so far.
    """

    problem: MMShape
    candidates: Candidates
    unusable: tuple[CompileOutcome, ...] = ()
    one_by_one: bool = False
    start: int = 0
    failed: tuple[int, ...] = ()


@dataclass(frozen=True)
class TimingResult:
    """Timings of a problem, the seconds they took and the number of discarded samples."""

    dataset: Dataset
    seconds: float
    stalled: int


class TimingWorker:
    """Processes timing requests, in a process that any of them may end."""

    def __init__(self, settings: TimingSettings, mark: ProgressMarker, seed: int) -> None:
        self._outcomes: dict[Any, CompileOutcome] = {}
        self._sweep = settings.sweep(self._outcomes, seed)
        self._mark = mark
        self._cuda = self._sweep.timer.device.type == "cuda"

    def time(self, request: TimingRequest) -> TimingResult:
        """Time a problem; a GPU error is raised and ends the process."""
        start, stalled = time.monotonic(), self._sweep.timer.stalled
        self._outcomes.update({outcome.spec: outcome for outcome in request.unusable})
        try:
            if request.one_by_one:
                self._run_each_alone(request)
            dataset = self._time(request)
        except torch.OutOfMemoryError as fault:
            reason = str(fault).partition(". ")[0]
            raise MissingPartError(
                f"{request.problem}: {reason}; end what else uses the GPU and run the same command "
                "again"
            ) from None
        except RuntimeError as fault:
            if NO_MEMORY not in str(fault):
                raise
            raise MissingPartError(
                f"{request.problem}: this machine has not enough memory for it; end what else uses "
                "it, leave it out or lower --max-size"
            ) from None
        return TimingResult(dataset, time.monotonic() - start, self._sweep.timer.stalled - stalled)

    def _run_each_alone(self, request: TimingRequest) -> None:
        """Run each candidate once, alone and to completion."""
        band, self._sweep.band = self._sweep.band, None
        for index in range(request.start, len(request.candidates)):
            if index not in request.failed:
                self._mark(index)
                self._sweep.time(request.problem, request.candidates.take(np.array([index])))
                if self._cuda:
                    torch.cuda.synchronize()
        self._mark(WORKING)
        self._sweep.band = band

    def _time(self, request: TimingRequest) -> Dataset:
        keep = np.ones(len(request.candidates), dtype=bool)
        keep[list(request.failed)] = False
        parts = []
        if any(keep):
            parts.append(self._sweep.time(request.problem, request.candidates.take(keep)))
        if request.failed:
            parts.append(self._failures(request))
        return Dataset.merge(parts)

    def _failures(self, request: TimingRequest) -> Dataset:
        releases = self._sweep.releases
        return Dataset.from_timings(
            Timing(
                self._sweep.hardware,
                request.problem,
                request.candidates[index],
                None,
                "failed",
                repeats=0,
                torch=releases.get("torch", ""),
                triton=releases.get("triton", ""),
                threads=self._sweep.threads,
            )
            for index in request.failed
        )


def start_timing(
    settings: TimingSettings, device: str, seed: int, mark: ProgressMarker
) -> Callable[[TimingRequest], TimingResult]:
    """Handler factory of the worker pool for one device.

    `device` is the value for CUDA_VISIBLE_DEVICES; empty leaves it unchanged.
    """
    if device and device != CPU:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    return TimingWorker(settings, mark, seed).time
