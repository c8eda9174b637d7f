"""Scheduling of one machine's processes: kernel compilers, and one timing process per device.

A timing process gets the next problems of its current group, then of the next group whose kernels
are compiled, then of the group with the most problems left. A problem that ends its process is run
again to find the kernel at fault, which is recorded as failed and not launched on other problems.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from torch_diode.collection.devices import CPU
from torch_diode.collection.kernels.compile import use_inductors_ptxas
from torch_diode.collection.kernels.outcome import CompileOutcome, KernelInfeasibleError
from torch_diode.collection.plan import Group
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.workers.compile_ahead import CompileAhead
from torch_diode.collection.workers.fork_safety import holds_gpu
from torch_diode.collection.workers.pool import (
    STARTING,
    JobResult,
    WorkerDied,
    WorkerError,
    WorkerPool,
)
from torch_diode.collection.workers.timing_worker import (
    TimingRequest,
    TimingResult,
    TimingSettings,
    start_timing,
)
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape

_TIMINGS_A_BATCH = 2000
_PROBLEMS_A_BATCH = 32
"""About a second of work on a GPU; assigning the next batch takes a millisecond."""
_MOST_STARTS = 3
_MOST_DEATHS = 50
"""Processes lost in a row without a candidate that ran: then the kernels are not at fault."""
_MOST_UNEXPLAINED = 3
"""Processes a problem may end although each of its candidates runs alone."""


@dataclass
class GroupReport:
    """Totals of the problems of a group that are done; seconds are summed over all processes."""

    name: str
    problems: int = 0
    timings: int = 0
    waited_s: float = 0.0
    timed_s: float = 0.0
    stalled: int = 0
    wrong: int = 0

    def add(self, result: TimingResult) -> None:
        """Count a problem."""
        self.problems += 1
        self.timings += len(result.dataset)
        self.timed_s += result.seconds
        self.stalled += result.stalled
        self.wrong += result.dataset.table.column("status").to_pylist().count("wrong")


@dataclass(eq=False)
class ScheduledGroup:
    """Progress of a group: the problems left, and totals of those done."""

    report: GroupReport
    missing: set[Any]
    """Kernels not compiled yet."""
    todo: deque[ProblemTask] = field(default_factory=deque)
    left: int = 0
    """Problems not done, assigned or not."""
    wanted_at: float | None = None
    """Time at which a process first had to wait for its kernels."""
    started: bool = False


@dataclass(eq=False)
class ProblemTask:
    """A problem of a group, and its candidates known to end their process."""

    group: ScheduledGroup
    problem: MMShape
    candidates: Candidates
    one_by_one: bool = False
    start: int = 0
    failed: list[int] = field(default_factory=list)
    unexplained: int = 0


@dataclass(frozen=True)
class TimedProblem:
    """A problem that is done; `dataset` is None if it kept ending processes and no single candidate
    was at fault."""

    problem: MMShape
    dataset: Dataset | None
    stalled: int = 0
    """Samples that were discarded and taken again."""

    def keep(self, store: TimingStore, left_out: list[MMShape]) -> None:
        """Store the timings; a problem without any is added to those left out."""
        if self.dataset is None:
            left_out.append(self.problem)
        else:
            store.append(self.dataset, self.stalled)


class Scheduler:
    """Compiles and times groups: call `add_group`, then `advance` while `busy`."""

    def __init__(
        self,
        settings: TimingSettings,
        devices: Sequence[str],
        processes: int,
        report: Callable[[GroupReport], None] = lambda _: None,
    ) -> None:
        """`report` is called with each group that is done."""
        self._settings = settings
        self._on_cpu = settings.hardware.kind == CPU
        """A CPU compiles and times in turn: a compiler would disturb what is timed."""
        fresh = self._on_cpu or holds_gpu()
        self._report = report
        self._groups: list[ScheduledGroup] = []
        self._current: dict[int, ScheduledGroup] = {}
        self._submitted: set[Any] = set()
        self._unusable: list[CompileOutcome] = []
        """Kernels not to launch; each timing process is sent those new to it."""
        self._unusable_sent = [0] * len(devices)
        self._failed_starts = self._deaths = 0
        self._closing = False
        self.lost: list[str] = []
        """Reasons of lost timing processes."""
        use_inductors_ptxas()  # before any process starts: time the code that Inductor would run
        factories = [
            functools.partial(start_timing, settings, name, settings.seed + index)
            for index, name in enumerate(devices)
        ]
        self._timing: WorkerPool[ProblemTask, TimingResult] = WorkerPool(factories, fresh=fresh)
        arch = settings.hardware.arch.removeprefix("sm_")
        self.ahead = CompileAhead([], int(arch) if arch.isdigit() else 0, processes, fresh=fresh)

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self._timing.stop()
        self.ahead.stop()

    @property
    def busy(self) -> bool:
        """True if problems are left to time."""
        return bool(self._timing.unfinished_jobs()) or any(group.todo for group in self._groups)

    def add_group(self, group: Group) -> None:
        """Append a group to compile and time."""
        new = [spec for spec in group.specs if spec not in self._submitted]
        self._submitted.update(new)
        self.ahead.add(self._settings.library.jobs(new))
        missing = set(group.specs) - self.ahead.outcomes.keys()
        added = ScheduledGroup(GroupReport(group.name), missing, left=len(group.tasks))
        added.todo.extend(ProblemTask(added, *task) for task in group.tasks)
        self._groups.append(added)

    def close(self) -> None:
        """Finish the problem each process is timing and drop the rest."""
        self._closing = True
        self._timing.drop_pending()
        for group in self._groups:
            group.todo.clear()

    def pids(self) -> list[int]:
        """Process ids of the timing processes."""
        return self._timing.pids()

    def unfinished_groups(self) -> list[GroupReport]:
        """Totals of the groups that are not done."""
        return [group.report for group in self._groups]

    def connections(self) -> list[Connection]:
        """Connections to wait on before calling `advance`."""
        return [*self._timing.connections(), *self.ahead.connections()]

    def advance(self, timeout: float | None = 0) -> list[TimedProblem]:
        """Problems finished since the last call, after waiting up to `timeout` seconds.

        Processes have their next work when this returns, so they do not wait for the caller.
        """
        # Started here, not in __init__: forked now, they have the groups added before.
        if not self._closing:
            self._timing.start()
        self.ahead.paused = self._on_cpu and bool(self._timing.unfinished_jobs())
        self.ahead.assign_jobs()
        self._assign()
        wait(self.connections(), timeout)
        for outcome in self.ahead.compiled():
            self._compiled(outcome)
        done = [timed for event in self._timing.read() for timed in self._handle(event)]
        self._assign()
        return done

    def _compiled(self, outcome: CompileOutcome) -> None:
        for group in self._groups:
            group.missing.discard(outcome.spec)
        if not outcome.fits(self._settings.hardware.shared_memory_per_block):
            self._unusable.append(outcome)

    def _assign(self) -> None:
        if self._on_cpu and self.ahead.unfinished_jobs():
            return
        for index in self._timing.idle():
            group = self._choose(index)
            if group is not None:
                self._current[index] = group
                batch = self._batch(group)
                self._timing.submit(index, batch, [self._request(index, task) for task in batch])

    def _choose(self, index: int) -> ScheduledGroup | None:
        current = self._current.get(index)
        if current is not None and current.todo:
            return current
        ready = [group for group in self._groups if group.todo and not group.missing]
        fresh = next((group for group in ready if not group.started), None)
        if fresh is not None:
            fresh.started = True
            if fresh.wanted_at is not None:
                fresh.report.waited_s = time.monotonic() - fresh.wanted_at
            return fresh
        if ready:
            return max(ready, key=lambda group: len(group.todo))
        waiting = next((group for group in self._groups if group.todo), None)
        if waiting is not None and waiting.wanted_at is None:
            waiting.wanted_at = time.monotonic()
        return None

    def _batch(self, group: ScheduledGroup) -> list[ProblemTask]:
        """Next problems of a group: a fair share; one to run one by one is alone in it."""
        todo = group.todo
        batch = [todo.popleft()]
        share = min(math.ceil((len(todo) + 1) / len(self._unusable_sent)), _PROBLEMS_A_BATCH)
        timings = len(batch[0].candidates)
        alone = batch[0].one_by_one
        while todo and len(batch) < share and not (alone or todo[0].one_by_one):
            timings += len(todo[0].candidates)
            if timings > _TIMINGS_A_BATCH:
                break
            batch.append(todo.popleft())
        return batch

    def _request(self, index: int, task: ProblemTask) -> TimingRequest:
        unusable = tuple(self._unusable[self._unusable_sent[index] :])
        self._unusable_sent[index] = len(self._unusable)
        failed = tuple(task.failed)
        return TimingRequest(
            task.problem, task.candidates, unusable, task.one_by_one, task.start, failed
        )

    def _handle(
        self, event: JobResult[ProblemTask, TimingResult] | WorkerDied[ProblemTask]
    ) -> Iterator[TimedProblem]:
        if isinstance(event, WorkerDied):
            yield from self._handle_death(event)
            return
        self._failed_starts = self._deaths = 0
        event.job.group.report.add(event.result)
        yield self._done(event.job, event.result.dataset, event.result.stalled)

    def _done(self, task: ProblemTask, dataset: Dataset | None, stalled: int = 0) -> TimedProblem:
        group = task.group
        group.left -= 1
        if not group.left:
            self._groups.remove(group)
            self._report(group.report)
        return TimedProblem(task.problem, dataset, stalled)

    def _handle_death(self, event: WorkerDied[ProblemTask]) -> Iterator[TimedProblem]:
        """Find the cause; queue the remaining problems again."""
        self._unusable_sent[event.worker] = 0
        self.lost.append(event.reason)
        requeued = list(event.pending)
        if event.progress == STARTING or event.job is None:
            self._failed_starts += 1
            if self._failed_starts >= _MOST_STARTS:
                raise WorkerError(
                    f"timing process: {event.reason} before its first problem, "
                    f"{self._failed_starts} times in a row; look at the device (nvidia-smi)"
                )
            requeued = requeued if event.job is None else [event.job, *requeued]
        elif self._record_fault(event.job, event.progress, event.reason):
            requeued.insert(0, event.job)
        else:
            yield self._done(event.job, None)
        if not self._closing:
            for task in reversed(requeued):
                task.group.todo.appendleft(task)

    def _record_fault(self, task: ProblemTask, progress: int, reason: str) -> bool:
        """Record the candidate at fault, if known; return whether to run the problem again."""
        if progress >= 0:
            self._deaths = self._deaths + 1 if progress == task.start else 0
            if self._deaths >= _MOST_DEATHS:
                raise WorkerError(
                    f"timing process: {reason}, {self._deaths} times in a row, each time with "
                    "another candidate; look at the device (nvidia-smi)"
                )
            task.failed.append(progress)
            task.start = progress + 1
            self._exclude_kernel(task, progress, reason)
        elif task.one_by_one:
            task.unexplained += 1
            task.start = 0
        task.one_by_one = True
        return task.unexplained < _MOST_UNEXPLAINED

    def _exclude_kernel(self, task: ProblemTask, number: int, reason: str) -> None:
        candidate = task.candidates[number]
        if candidate.config is not None:
            with contextlib.suppress(KernelInfeasibleError):
                spec = self._settings.library.spec_for(task.problem, candidate)
                self._unusable.append(CompileOutcome(spec, 0.0, error=reason))
