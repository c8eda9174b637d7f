"""The sweep: every candidate of every problem timed with kernels compiled once and used often."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from torch_diode.collection.kernel_compile import CompileOutcome
from torch_diode.collection.kernels import KernelInfeasibleError, KernelSpec
from torch_diode.collection.launching import Launcher
from torch_diode.collection.operands import Operands, operands
from torch_diode.collection.timer import Launch, Measured, Timer
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidates import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape

_TOLERANCE = {"bfloat16": 2e-2, "float16": 3e-3, "float32": 2e-5, "tf32": 3e-3}
"""Largest ‖out − reference‖ / ‖reference‖ of a right kernel; the reference is ATen's result."""


@dataclass
class Sweep:
    """Times candidates on problems, one problem at a time.

    `outcomes` says of each compiled kernel what compiling came to; a kernel that is not in it is
    compiled when it is first launched. `checked` remembers which kernels gave a right result.
    """

    hardware: str
    launcher: Launcher
    timer: Timer
    releases: Mapping[str, str]
    outcomes: Mapping[KernelSpec, CompileOutcome] = field(default_factory=dict)
    shared_memory: int = 0
    seed: int = 0
    checked: dict[KernelSpec, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._generator = torch.Generator(self.timer.device).manual_seed(self.seed)

    def time(self, problem: MMShape, candidates: Candidates) -> Dataset:
        """The timings of all candidates on a problem; those that cannot run say so."""
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = problem.tf32
        try:
            return self._time(problem, candidates)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def _time(self, problem: MMShape, candidates: Candidates) -> Dataset:
        tensors = operands(problem, self.timer.device, self._generator)
        status = ["ok"] * len(candidates)
        launches: list[Launch | None] = [None] * len(candidates)
        specs: list[KernelSpec | None] = [None] * len(candidates)
        for position, candidate in enumerate(candidates):
            specs[position], launches[position], status[position] = self._prepare(
                tensors, candidate
            )
        self._check(tensors, specs, launches, status)
        runnable = [i for i, launch in enumerate(launches) if launch and status[i] == "ok"]
        measured = self.timer.measure(_calls(launches, runnable))
        results = dict(zip(runnable, measured, strict=True))
        return self._dataset(problem, candidates, status, results)

    def _prepare(
        self, tensors: Operands, candidate: Candidate
    ) -> tuple[KernelSpec | None, Launch | None, str]:
        if candidate.template == ATEN:
            return None, tensors.aten(), "ok"
        try:
            spec = self.launcher.spec_for(tensors.problem, candidate)
            outcome = self.outcomes.get(spec)
            if outcome is not None and outcome.error:
                return spec, None, "failed"
            if outcome is not None and not outcome.fits(self.shared_memory):
                return spec, None, "out_of_resources"
            return spec, self.launcher.bind(spec, tensors), "ok"
        except KernelInfeasibleError:
            return None, None, "out_of_resources"

    def _check(
        self,
        tensors: Operands,
        specs: Sequence[KernelSpec | None],
        launches: Sequence[Launch | None],
        status: list[str],
    ) -> None:
        """Compare each kernel's first result with ATen's: a fast wrong kernel is no candidate."""
        new = [
            i
            for i, (spec, launch) in enumerate(zip(specs, launches, strict=True))
            if launch and spec and spec not in self.checked
        ]
        if new:
            tensors.aten()()
            reference = tensors.out.float()
            scale = reference.norm()
            errors = []
            for i in new:
                tensors.out.fill_(math.nan)
                launch = launches[i]
                assert launch is not None
                launch()
                errors.append((tensors.out.float() - reference).norm() / scale)
            limit = _TOLERANCE["tf32" if tensors.problem.tf32 else tensors.problem.dtype]
            for i, error in zip(new, torch.stack(errors).tolist(), strict=True):
                spec = specs[i]
                assert spec is not None
                self.checked[spec] = error <= limit
        for i, spec in enumerate(specs):
            if spec is not None and not self.checked.get(spec, True):
                status[i] = "wrong"

    def _dataset(
        self,
        problem: MMShape,
        candidates: Candidates,
        status: Sequence[str],
        results: Mapping[int, Measured],
    ) -> Dataset:
        count = len(candidates)
        columns: dict[str, Any] = {"hardware": [self.hardware] * count}
        columns |= {name: [value] * count for name, value in problem.to_dict().items()}
        names = np.array(candidates.templates)
        columns["template"] = names[candidates.template].tolist()
        columns |= {name: candidates.fields[name] for name in NUMBER_FIELDS}
        columns["status"] = list(status)
        columns |= _result_columns(count, results)
        columns |= {name: [text] * count for name, text in self.releases.items()}
        columns["method"] = ["sweep"] * count
        return Dataset.from_columns(columns)


def _calls(launches: Sequence[Launch | None], members: Sequence[int]) -> list[Launch]:
    return [launch for i in members if (launch := launches[i]) is not None]


def _result_columns(count: int, results: Mapping[int, Measured]) -> dict[str, Any]:
    def column(read: Callable[[Measured], float | int], absent: float | int | None) -> list[Any]:
        return [read(results[i]) if i in results else absent for i in range(count)]

    return {
        "time_us": column(lambda m: m.time_us, None),
        "spread": column(lambda m: m.spread, None),
        "repeats": column(lambda m: m.repeats, 0),
    }
