"""Run of the fidelity workflow: requests to its processes and their results."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from _fidelity_bench import STATIC, SWEEP, Time
from _fidelity_compiling import CompileStatic, CompileSweep, Lower, compiler
from _fidelity_plan import Plan

from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelLibrary, KernelSpec
from torch_diode.collection.kernels.outcome import KernelInfeasibleError
from torch_diode.collection.workers.pool import ProgressMarker, WorkerPool
from torch_diode.types.candidate import Candidate
from torch_diode.types.hardware import Hardware
from torch_diode.types.timing import Timing
from workflows.measuring.pipeline import Pipeline

ENOUGH = 2 / 3
"""At the end, a problem with this share of its kernels compiled is timed with those."""


@dataclass
class Run:
    """Lowers, compiles both ways and times problems until done or until the deadline
    (`pipeline.PipelineSpec`)."""

    plans: Sequence[Plan]
    hardware: Hardware
    library: KernelLibrary
    processes: int
    deadline: float
    keep: Callable[[Sequence[Timing]], None]
    """Writes what there is."""
    swept: bool = False
    """The sweep's kernels have been timed before: only Inductor's are."""
    timings: list[Timing] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    compiled_kernels: Counter[str] = field(default_factory=Counter)
    _done: int = 0

    def __post_init__(self) -> None:
        launcher = Launcher(self.library)
        self._specs = [{} if self.swept else _specs_of(plan, launcher) for plan in self.plans]
        self._rendered: dict[int, Sequence[Any]] = {}

    def specs(self) -> set[KernelSpec]:
        """The sweep's kernels, each once."""
        return {spec for specs in self._specs for spec in specs.values()}

    def go(self, benches: WorkerPool[Any, Any]) -> None:
        """Run until done or out of time."""

        def work(mark: ProgressMarker) -> Callable[[Any], Any]:
            return compiler(self.hardware, mark)

        with WorkerPool[Any, Any]([work] * self.processes) as compilers:
            numbers = range(len(self.plans))
            Pipeline(self, numbers, self.faults).run(compilers, benches, self.deadline)

    def prepare(self, number: int) -> Lower:
        """Request to render with Inductor."""
        return Lower(self.plans[number])

    def kernels(self, number: int, answer: Sequence[Any]) -> dict[Hashable, Any]:
        """Inductor's kernels of the problem and the sweep's."""
        self._rendered[number] = answer
        requests: dict[Hashable, Any] = {
            (number, kernel.candidate): CompileStatic(kernel) for kernel in answer
        }
        specs = list(dict.fromkeys(self._specs[number].values()))
        for spec, job in zip(specs, self.library.jobs(specs), strict=True):
            requests[spec] = CompileSweep(job)
        return requests

    def compiled(self, key: Hashable, answer: Any) -> str:
        """Error of the compiler, or empty."""
        swept = isinstance(key, KernelSpec)
        self.compiled_kernels[SWEEP if swept else STATIC] += 1
        return answer.error if swept else answer

    def is_enough(self, number: int, keys: Sequence[Hashable]) -> bool:
        """True if most candidates have their kernels, of both kinds if both are timed."""
        request = self.time(number, keys)
        there = len(request.kernels)
        if not self.swept:
            there = min(there, len(request.specs))
        return there >= ENOUGH * (len(request.plan.candidates) - 1)

    def time(self, number: int, keys: Sequence[Hashable]) -> Time:
        """Request to time the compiled kernels."""
        there = set(keys)
        kernels = [k for k in self._rendered[number] if (number, k.candidate) in there]
        specs = [(c, spec) for c, spec in self._specs[number].items() if spec in there]
        return Time(self.plans[number], tuple(kernels), tuple(specs))

    def timed(self, _: int, answer: Sequence[Timing]) -> None:
        """Store the timings, and print progress now and then."""
        self.timings += answer
        self.faults.update(f"{t.method} {t.status}" for t in answer if t.status != "ok")
        self._done += 1
        if self._done % 10 == 0 or self._done == len(self.plans):
            print(
                f"{self._done}/{len(self.plans)} problems, "
                f"{self.compiled_kernels[STATIC]:,} static and "
                f"{self.compiled_kernels[SWEEP]:,} sweep kernels compiled, "
                f"{self.deadline - time.monotonic():.0f} s left",
                flush=True,
            )

    def save(self) -> None:
        """Save all timings."""
        self.keep(self.timings)


def _specs_of(plan: Plan, launcher: Launcher) -> dict[Candidate, KernelSpec]:
    found = {}
    for candidate in plan.candidates:
        if candidate.config is not None:
            with contextlib.suppress(KernelInfeasibleError):
                found[candidate] = launcher.spec_for(plan.problem, candidate)
    return found
