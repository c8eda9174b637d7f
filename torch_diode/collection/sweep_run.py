"""A sweep over many problems: compile their kernels, time the candidates and store the timings.

Processes compile the groups of problems in order while others, one per device, time the groups
before them. This process schedules the work and stores the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch_diode.collection.kernels.outcome import CompileOutcome
from torch_diode.collection.plan import Group
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.workers.scheduler import GroupReport, Scheduler
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.types.problem import MMShape

_LONGEST_WAIT_S = 60.0
"""The system refuses waits of more than a month."""


@dataclass
class SweepRun:
    """Groups in order, and what is needed to compile and to time them.

    `devices` has an entry per timing process: the value for its CUDA_VISIBLE_DEVICES, `cpu`, or
    empty for the current device.
    """

    groups: Sequence[Group]
    settings: TimingSettings
    devices: Sequence[str] = ("",)
    lost: list[str] = field(default_factory=list)
    """Reasons of lost timing processes; each was replaced."""
    left_out: list[MMShape] = field(default_factory=list)
    """Problems that kept ending processes although no single candidate was at fault."""

    def run(
        self,
        store: TimingStore,
        processes: int,
        deadline: float,
        report: Callable[[GroupReport], None] = lambda _: None,
        compiled: Callable[[int, int], None] = lambda *_: None,
    ) -> list[CompileOutcome]:
        """Compile and time until done, or until the deadline (`time.monotonic`): then each timing
        process finishes its current problem, and the rest is dropped. `compiled` is called with the
        number of kernels that are compiled, and of all.

        Returns the compile outcome of each kernel.
        """
        with Scheduler(self.settings, self.devices, processes, report) as scheduler:
            self.lost = scheduler.lost
            for group in self.groups:
                scheduler.add_group(group)
            kernels, known = len({spec for group in self.groups for spec in group.specs}), 0
            while scheduler.busy:
                left = deadline - time.monotonic()
                if left <= 0:
                    scheduler.close()
                    if not scheduler.busy:  # nothing is being timed, and nothing more would come
                        break
                for timed in scheduler.advance(min(left, _LONGEST_WAIT_S) if left > 0 else None):
                    timed.keep(store, self.left_out)
                if len(scheduler.ahead.outcomes) > known:
                    known = len(scheduler.ahead.outcomes)
                    compiled(known, kernels)
            for unfinished in scheduler.unfinished_groups():
                if unfinished.problems:
                    report(unfinished)
            outcomes = list(scheduler.ahead.outcomes.values())
        store.flush()
        return outcomes
