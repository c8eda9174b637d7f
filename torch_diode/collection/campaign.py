"""A campaign: many problems with their candidates, compiled ahead, timed, and kept.

Problems come in groups that share kernels. Worker processes compile the groups in order while the
GPU times the ones before, so neither waits long for the other.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from torch_diode.collection.compile_ahead import CompileAhead
from torch_diode.collection.kernel_compile import CompileOutcome
from torch_diode.collection.kernels import KernelInfeasibleError, KernelLibrary, KernelSpec
from torch_diode.collection.launching import Launcher
from torch_diode.collection.store import TimingStore
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timer import Timer
from torch_diode.types.candidates import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

Task = tuple[MMShape, Candidates]


@dataclass(frozen=True)
class Group:
    """Problems that are timed one after the other, and share most of their kernels."""

    name: str
    tasks: tuple[Task, ...]
    specs: tuple[KernelSpec, ...]
    """The kernels they need, each once."""

    @classmethod
    def of(cls, name: str, tasks: Sequence[Task], library: KernelLibrary) -> Group:
        """A group of these problems, its kernels found."""
        launcher = Launcher(library)
        found: dict[KernelSpec, None] = {}
        for problem, candidates in tasks:
            for candidate in candidates:
                if candidate.config is not None:
                    with contextlib.suppress(KernelInfeasibleError):
                        found[launcher.spec_for(problem, candidate)] = None
        return cls(name, tuple(tasks), tuple(found))


@dataclass(frozen=True)
class GroupReport:
    """What came of a group."""

    name: str
    problems: int
    timings: int
    waited_s: float
    timed_s: float
    stalled: int
    wrong: int


@dataclass
class Campaign:
    """The plan: groups in order, and what is needed to compile them."""

    groups: Sequence[Group]
    library: KernelLibrary
    hardware: Hardware
    releases: dict[str, str]
    seed: int = 0

    def run(
        self,
        store: TimingStore,
        processes: int,
        deadline: float,
        report: Callable[[GroupReport], None],
    ) -> list[CompileOutcome]:
        """Compile ahead and time until done, or until the deadline (`time.monotonic`).

        Returns what compiling each kernel came to: what it needs of the chip.
        """
        once = dict.fromkeys(spec for group in self.groups for spec in group.specs)
        arch = int(self.hardware.arch.removeprefix("sm_"))
        ahead = CompileAhead(self.library.jobs(once), arch, processes)
        try:
            device = torch.device("cuda", torch.cuda.current_device())
            timer = Timer(device, 2 * self.hardware.l2_bytes, self.seed)
            sweep = Sweep(
                self.hardware.name,
                Launcher(self.library),
                timer,
                self.releases,
                ahead.outcomes,
                self.hardware.shared_memory_per_block,
                self.seed,
            )
            for group in self.groups:
                start = time.monotonic()
                if not ahead.wait_for(group.specs, max(deadline - start, 0)):
                    break
                report(self._time_group(group, sweep, store, time.monotonic() - start, deadline))
                if time.monotonic() >= deadline:
                    break
        finally:
            ahead.stop()
            store.flush()
        return list(ahead.outcomes.values())

    def _time_group(
        self, group: Group, sweep: Sweep, store: TimingStore, waited: float, deadline: float
    ) -> GroupReport:
        start, stalled = time.monotonic(), sweep.timer.stalled
        problems = timings = wrong = 0
        for problem, candidates in group.tasks:
            if time.monotonic() >= deadline:
                break
            finished = sweep.time(problem, candidates)
            store.append(finished)
            problems += 1
            timings += len(finished)
            wrong += finished.table.column("status").to_pylist().count("wrong")
        spent = time.monotonic() - start
        stalled = sweep.timer.stalled - stalled
        return GroupReport(group.name, problems, timings, waited, spent, stalled, wrong)
