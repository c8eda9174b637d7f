"""A sweep over many problems: compile their kernels, time the candidates and store the timings.

Processes compile the groups of problems in order while others, one per device, time the groups
before them. This process schedules the work and stores the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch_diode.collection.kernels.compile import CompileOutcome
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import Group
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.workers.scheduler import ScheduledRun, Scheduler, TimedProblem
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_LONGEST_WAIT_S = 60.0
"""The system refuses waits of more than a month."""


@dataclass(frozen=True)
class GroupReport:
    """Totals of a group; seconds are summed over all timing processes."""

    name: str
    problems: int
    timings: int
    waited_s: float
    timed_s: float
    stalled: int
    wrong: int

    @classmethod
    def of(cls, run: ScheduledRun) -> GroupReport:
        """Report of a run, finished or not."""
        counts = (run.problems, run.timings, run.waited_s, run.timed_s, run.stalled, run.wrong)
        return cls(run.group.name, *counts)


@dataclass
class SweepRun:
    """Groups in order, and what is needed to compile and to time them.

    `devices` has an entry per timing process: the value for its CUDA_VISIBLE_DEVICES, `cpu`, or
    empty for the current device.
    """

    groups: Sequence[Group]
    library: KernelLibrary
    hardware: Hardware
    releases: Mapping[str, str]
    seed: int = 0
    band: float | None = None
    """If given, the fastest of each problem are timed again until their noise is within it."""
    devices: Sequence[str] = ("",)
    lost: list[str] = field(default_factory=list)
    """Reasons of lost timing processes; each was replaced."""
    left_out: list[MMShape] = field(default_factory=list)
    """Problems that kept ending processes although no single candidate was at fault."""

    def timing_settings(self) -> TimingSettings:
        """Settings of the timing processes."""
        return TimingSettings(self.library, self.hardware, self.releases, self.seed, self.band)

    def run(
        self,
        store: TimingStore,
        processes: int,
        deadline: float,
        report: Callable[[GroupReport], None],
    ) -> list[CompileOutcome]:
        """Compile and time until done, or until the deadline (`time.monotonic`): then each timing
        process finishes its current problem, and the rest is dropped.

        Returns the compile outcome of each kernel.
        """
        with Scheduler(self.timing_settings(), self.devices, processes) as scheduler:
            self.lost = scheduler.lost
            for group in self.groups:
                scheduler.add_group(group)
            while scheduler.busy:
                left = deadline - time.monotonic()
                if left <= 0:
                    scheduler.close()
                for timed in scheduler.advance(min(left, _LONGEST_WAIT_S) if left > 0 else None):
                    self._store(timed, store, report)
            for run in scheduler.unfinished_runs():
                if run.problems:
                    report(GroupReport.of(run))
            outcomes = list(scheduler.outcomes.values())
        store.flush()
        return outcomes

    def _store(
        self, timed: TimedProblem, store: TimingStore, report: Callable[[GroupReport], None]
    ) -> None:
        if timed.dataset is None:
            self.left_out.append(timed.problem)
        else:
            store.append(timed.dataset, timed.stalled)
        if not timed.run.left:
            report(GroupReport.of(timed.run))
