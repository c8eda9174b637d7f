"""A campaign: many problems with their candidates, compiled ahead, timed, and kept.

Problems come in groups that share kernels. Processes compile the groups in order while others,
one for each device, time the ones before, so neither waits long for the other. This process does
neither: it hands out work and keeps what comes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch_diode.collection.groups import Group, Task
from torch_diode.collection.kernels.compile import CompileOutcome
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.workers.scheduler import ScheduledRun, Scheduler, TimedProblem
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_LONGEST_WAIT_S = 60.0
"""Longer ones than a month the system refuses."""

__all__ = ["Group", "GroupReport", "SweepRun", "Task"]


@dataclass(frozen=True)
class GroupReport:
    """What came of a group; seconds are those of all timing processes together."""

    name: str
    problems: int
    timings: int
    waited_s: float
    timed_s: float
    stalled: int
    wrong: int

    @classmethod
    def of(cls, run: ScheduledRun) -> GroupReport:
        """From a run, done or not."""
        counts = (run.problems, run.timings, run.waited_s, run.timed_s, run.stalled, run.wrong)
        return cls(run.group.name, *counts)


@dataclass
class SweepRun:
    """The plan: groups in order, and what is needed to compile and to time them.

    `devices` has an entry for each timing process: what CUDA_VISIBLE_DEVICES should say there,
    `cpu`, or nothing for the device that is there.
    """

    groups: Sequence[Group]
    library: KernelLibrary
    hardware: Hardware
    releases: Mapping[str, str]
    seed: int = 0
    band: float | None = None
    """Where given, the fastest of each problem are timed again until their noise is within it."""
    devices: Sequence[str] = ("",)
    lost: list[str] = field(default_factory=list)
    """Why timing processes were lost; each was replaced."""
    left_out: list[MMShape] = field(default_factory=list)
    """Problems that ended process after process, and no candidate of theirs to blame."""

    def setting(self) -> TimingSettings:
        """What timing processes are made with."""
        return TimingSettings(self.library, self.hardware, self.releases, self.seed, self.band)

    def run(
        self,
        store: TimingStore,
        processes: int,
        deadline: float,
        report: Callable[[GroupReport], None],
    ) -> list[CompileOutcome]:
        """Compile ahead and time until done, or until the deadline (`time.monotonic`): then each
        timing process finishes the problem it is at, and the rest is dropped.

        Returns what compiling each kernel came to: what it needs of the chip.
        """
        with Scheduler(self.setting(), self.devices, processes) as shop:
            self.lost = shop.lost
            for group in self.groups:
                shop.give(group)
            while shop.busy:
                left = deadline - time.monotonic()
                if left <= 0:
                    shop.close()
                for timed in shop.advance(min(left, _LONGEST_WAIT_S) if left > 0 else None):
                    self._keep(timed, store, report)
            for run in shop.unfinished():
                if run.problems:
                    report(GroupReport.of(run))
            outcomes = list(shop.outcomes.values())
        store.flush()
        return outcomes

    def _keep(
        self, timed: TimedProblem, store: TimingStore, report: Callable[[GroupReport], None]
    ) -> None:
        if timed.dataset is None:
            self.left_out.append(timed.problem)
        else:
            store.append(timed.dataset)
        if not timed.run.left:
            report(GroupReport.of(timed.run))
