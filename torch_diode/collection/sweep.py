"""The sweep: times every candidate of a problem, with kernels shared between problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from torch_diode.collection.kernels import cpu
from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelSpec
from torch_diode.collection.kernels.operands import (
    Operands,
    operands,
    operands_from,
    tf32_precision,
)
from torch_diode.collection.kernels.outcome import CompileOutcome, KernelInfeasibleError
from torch_diode.collection.kernels.reference import Reference, is_close
from torch_diode.collection.kernels.split_k import split_launch
from torch_diode.collection.timers.timer import Launch, Measurement, Timer
from torch_diode.types.candidate import ATEN, CPP_GEMM, DECOMPOSE_K, LIBRARIES, Candidate
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape

if TYPE_CHECKING:
    from torch_diode.collection.kernels.cpp import CpuKernels

Kernel = KernelSpec | tuple[str, str, int]
"""Unit of verification: a compiled kernel, or a split of K in a dtype."""


@dataclass
class Sweep:
    """Times candidates on problems, one problem at a time.

    `outcomes` are the compile outcomes; a kernel without one is compiled at its first launch. With
    a `band`, the fastest candidates and the library's are timed again until the best time's noise
    is within it. `verified` records which kernels gave a correct result.
    """

    hardware: str
    launcher: Launcher | CpuKernels
    timer: Timer
    releases: Mapping[str, str]
    outcomes: Mapping[Any, CompileOutcome] = field(default_factory=dict)
    shared_memory: int = 0
    seed: int = 0
    band: float | None = None
    threads: int = 0
    """Threads of a CPU; 0 on a GPU."""
    verified: dict[Kernel, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._on_cpu = self.timer.device.type == "cpu"
        self._generator = torch.Generator(self.timer.device).manual_seed(self.seed)
        self._pool = cpu.RandomPool(self.seed) if self._on_cpu else None

    def time(self, problem: MMShape, candidates: Candidates) -> Dataset:
        """Time all candidates on a problem; those that cannot run have another status than ok."""
        with tf32_precision(problem.tf32):
            return self._time(problem, candidates)

    def _time(self, problem: MMShape, candidates: Candidates) -> Dataset:
        tensors = self._operands(problem)
        if self._on_cpu and ATEN not in candidates.templates:
            tensors.aten()()  # nobody else computes the reference
        status = ["ok"] * len(candidates)
        launches: list[Launch | None] = [None] * len(candidates)
        kernels: list[Kernel | None] = [None] * len(candidates)
        for position, candidate in enumerate(candidates):
            kernels[position], launches[position], status[position] = self._prepare(
                tensors, candidate
            )
        self._verify(tensors, kernels, launches, status)
        runnable = [i for i, launch in enumerate(launches) if launch and status[i] == "ok"]
        calls = _calls(launches, runnable)
        if self._on_cpu:
            ran = {candidates[i].template for i in runnable}
            built = [call.warm_up for call in calls if hasattr(call, "warm_up")]
            self.timer.keep_cached(cpu.warm_up(sorted(ran), tensors, built))
        measured = self.timer.measure(calls)
        if self.band is not None:
            vendor = [n for n, i in enumerate(runnable) if candidates[i].template == ATEN]
            measured = self.timer.refine(calls, measured, vendor, self.band)
        results = dict(zip(runnable, measured, strict=True))
        return self._dataset(problem, candidates, status, results)

    def _operands(self, problem: MMShape) -> Operands:
        if self._pool is not None:
            return operands_from(problem, self._pool)
        return operands(problem, self.timer.device, self._generator)

    def _prepare(
        self, tensors: Operands, candidate: Candidate
    ) -> tuple[Kernel | None, Launch | None, str]:
        if self._on_cpu and candidate.template in (*LIBRARIES, CPP_GEMM):
            launch, status = self._prepare_on_cpu(tensors, candidate)
            return None, launch, status
        if candidate.template == ATEN:
            return None, tensors.aten(), "ok"
        if candidate.template == DECOMPOSE_K:
            kernel = (DECOMPOSE_K, tensors.problem.dtype, candidate.split_k)
            return kernel, split_launch(tensors, candidate.split_k), "ok"
        try:
            launcher: Any = self.launcher
            spec = launcher.spec_for(tensors.problem, candidate)
            outcome = self.outcomes.get(spec)
            if outcome is not None and outcome.error:
                return spec, None, "failed"
            if outcome is not None and not outcome.fits(self.shared_memory):
                return spec, None, "out_of_resources"
            return spec, launcher.bind(spec, tensors), "ok"
        except KernelInfeasibleError:
            return None, None, "out_of_resources"

    def _prepare_on_cpu(self, tensors: Operands, candidate: Candidate) -> tuple[Launch | None, str]:
        """A call, and the outcome of its first run; ATen's result is the reference."""
        try:
            launch = self._launch_on_cpu(tensors, candidate)
            result = launch()
        except KernelInfeasibleError:
            return None, "failed"
        except RuntimeError as fault:
            if cpu.NO_MEMORY in str(fault):
                raise
            return None, "failed"  # oneDNN raises where it has no kernel
        if candidate.template == ATEN:
            tensors.out.copy_(result)
        return launch, "ok" if is_close(result, tensors.out) else "wrong"

    def _launch_on_cpu(self, tensors: Operands, candidate: Candidate) -> Launch:
        if candidate.template in LIBRARIES:
            return cpu.library_launch(candidate.template, tensors)
        kernels: Any = self.launcher
        spec = kernels.spec_for(tensors.problem, candidate)
        outcome = self.outcomes.get(spec)
        if outcome is not None and outcome.error:
            raise KernelInfeasibleError(outcome.error)
        launch: Launch = kernels.bind(spec, tensors)
        return launch

    def _verify(
        self,
        tensors: Operands,
        kernels: Sequence[Kernel | None],
        launches: Sequence[Launch | None],
        status: list[str],
    ) -> None:
        """Compare the first result of each kernel with ATen's."""
        new = [
            i
            for i, (kernel, launch) in enumerate(zip(kernels, launches, strict=True))
            if launch and kernel and kernel not in self.verified
        ]
        if new:
            reference = Reference(tensors)
            errors = [reference.error_of(launch) for launch in _calls(launches, new)]
            for i, error in zip(new, torch.stack(errors).tolist(), strict=True):
                kernel = kernels[i]
                assert kernel is not None
                self.verified[kernel] = reference.allows(error)
        for i, kernel in enumerate(kernels):
            if kernel is not None and not self.verified.get(kernel, True):
                status[i] = "wrong"

    def _dataset(
        self,
        problem: MMShape,
        candidates: Candidates,
        status: Sequence[str],
        results: Mapping[int, Measurement],
    ) -> Dataset:
        count = len(candidates)
        columns: dict[str, Any] = {"hardware": [self.hardware] * count}
        columns |= {name: [value] * count for name, value in problem.to_dict().items()}
        names = np.array(candidates.templates)
        columns["template"] = names[candidates.template].tolist()
        columns |= {name: candidates.fields[name] for name in NUMBER_FIELDS}
        columns["status"] = list(status)
        columns |= result_columns([results.get(i) for i in range(count)])
        columns |= {name: [text] * count for name, text in self.releases.items()}
        columns["method"] = ["sweep"] * count
        columns["threads"] = np.full(count, self.threads, np.int16)
        return Dataset.from_columns(columns)


def _calls(launches: Sequence[Launch | None], members: Sequence[int]) -> list[Launch]:
    return [launch for i in members if (launch := launches[i]) is not None]


def result_columns(results: Sequence[Measurement | None]) -> dict[str, Any]:
    """Measurements as dataset columns; null for candidates that did not run."""
    return {
        "time_us": [m.time_us if m else None for m in results],
        "spread": [m.spread if m else None for m in results],
        "repeats": [m.repeats if m else 0 for m in results],
    }
