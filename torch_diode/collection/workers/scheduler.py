"""One machine's processes: those that compile kernels, and one for each device that times them.

Groups of problems come in, timings go out. Timing processes pull: each takes the next problems of
the group it is in, then the next group whose kernels are compiled, then helps where most is left.
A problem that ends its process comes back to find the kernel that did it; that one is recorded as
failed, and not launched again on any problem.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from torch_diode.collection.groups import Group, Task
from torch_diode.collection.kernels.compile import CompileOutcome
from torch_diode.collection.kernels.library import KernelInfeasibleError, KernelSpec
from torch_diode.collection.kernels.ptxas import use_inductors_ptxas
from torch_diode.collection.workers.compile_ahead import CompileAhead
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
    timing_worker_on,
)
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape

_TIMINGS_A_BATCH = 2000
_PROBLEMS_A_BATCH = 32
"""About a second's work on a GPU; handing out the next takes a millisecond."""
_MOST_STARTS = 3
_MOST_LOSSES = 50
"""Processes lost in a row without one candidate that ran: then it is not the kernels."""
_MOST_BLAMELESS = 3
"""Processes a problem may end although each of its candidates runs alone."""


@dataclass(eq=False)
class ScheduledRun:
    """A group on its way: what is to do, and what came of it."""

    group: Group
    missing: set[KernelSpec]
    """Kernels not compiled yet."""
    todo: deque[ProblemTask] = field(default_factory=deque)
    left: int = 0
    """Problems not done, given out or not."""
    wanted_at: float | None = None
    """When a process first had to wait for its kernels."""
    started: bool = False
    waited_s: float = 0.0
    timed_s: float = 0.0
    problems: int = 0
    timings: int = 0
    stalled: int = 0
    wrong: int = 0


@dataclass(eq=False)
class ProblemTask:
    """A problem of a run, and what is known of the candidates that ended their process."""

    run: ScheduledRun
    task: Task
    careful: bool = False
    start: int = 0
    failed: list[int] = field(default_factory=list)
    blameless: int = 0


@dataclass(frozen=True)
class TimedProblem:
    """A problem that is done; `dataset` is None where it ended process after process and no
    candidate of it could be blamed."""

    run: ScheduledRun
    problem: MMShape
    dataset: Dataset | None


class Scheduler:
    """Give it groups, advance it, take what is done."""

    def __init__(self, setting: TimingSettings, devices: Sequence[str], processes: int) -> None:
        self._setting = setting
        self._runs: list[ScheduledRun] = []
        self._current: dict[int, ScheduledRun] = {}
        self._asked: set[KernelSpec] = set()
        self._bad: list[CompileOutcome] = []
        """Kernels not to launch; each timing process is told of those that are new to it."""
        self._told = [0] * len(devices)
        self._starts = self._losses = 0
        self._closing = False
        self.lost: list[str] = []
        """Why processes were lost, for people."""
        use_inductors_ptxas()  # before any process is started: what is timed is what compiles run
        works = [timing_worker_on(setting, device, number) for number, device in enumerate(devices)]
        self._timing: WorkerPool[ProblemTask, TimingResult] = WorkerPool(works)
        arch = setting.hardware.arch.removeprefix("sm_")
        self._ahead = CompileAhead([], int(arch) if arch.isdigit() else 0, processes)

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self._timing.stop()
        self._ahead.stop()

    @property
    def outcomes(self) -> dict[KernelSpec, CompileOutcome]:
        """What compiling each kernel came to, so far."""
        return self._ahead.outcomes

    @property
    def busy(self) -> bool:
        """Whether there is anything left to do."""
        return bool(self._timing.at_work()) or any(run.todo for run in self._runs)

    def give(self, group: Group) -> None:
        """Have a group compiled and timed after those before it."""
        new = [spec for spec in group.specs if spec not in self._asked]
        self._asked.update(new)
        self._ahead.add(self._setting.library.jobs(new))
        run = ScheduledRun(
            group, set(group.specs) - self._ahead.outcomes.keys(), left=len(group.tasks)
        )
        run.todo.extend(ProblemTask(run, task) for task in group.tasks)
        self._runs.append(run)

    def close(self) -> None:
        """Begin nothing more: the problem each process is at is finished, the rest is dropped."""
        self._closing = True
        self._timing.halt()
        for run in self._runs:
            run.todo.clear()

    def pids(self) -> list[int]:
        """The timing processes there are."""
        return self._timing.pids()

    def unfinished(self) -> list[ScheduledRun]:
        """The runs that are not done."""
        return list(self._runs)

    def handles(self) -> list[Connection]:
        """What to wait for before `advance` has something to say."""
        return [*self._timing.handles(), *self._ahead.handles()]

    def advance(self, timeout: float | None = 0) -> list[TimedProblem]:
        """The problems that are done since; waits for something to happen at most so long.

        Processes have their next work when this returns, so what the caller does with the
        answers costs them nothing.
        """
        # Now, not when made: what was given before is then known to all of them.
        if not self._closing:
            self._timing.start()
        self._ahead.hand_out()
        self._hand_out()
        wait(self.handles(), timeout)
        for outcome in self._ahead.read():
            self._compiled(outcome)
        done = [timed for event in self._timing.read() for timed in self._take(event)]
        self._hand_out()
        return done

    def _compiled(self, outcome: CompileOutcome) -> None:
        for run in self._runs:
            run.missing.discard(outcome.spec)
        if not outcome.fits(self._setting.hardware.shared_memory_per_block):
            self._bad.append(outcome)

    def _hand_out(self) -> None:
        for member in self._timing.idle():
            run = self._choose(member)
            if run is not None:
                self._current[member] = run
                batch = self._batch(run)
                self._timing.give(member, batch, [self._order(member, e) for e in batch])

    def _choose(self, member: int) -> ScheduledRun | None:
        current = self._current.get(member)
        if current is not None and current.todo:
            return current
        ready = [run for run in self._runs if run.todo and not run.missing]
        fresh = next((run for run in ready if not run.started), None)
        if fresh is not None:
            fresh.started = True
            if fresh.wanted_at is not None:
                fresh.waited_s = time.monotonic() - fresh.wanted_at
            return fresh
        if ready:
            return max(ready, key=lambda run: len(run.todo))
        waiting = next((run for run in self._runs if run.todo), None)
        if waiting is not None and waiting.wanted_at is None:
            waiting.wanted_at = time.monotonic()
        return None

    def _batch(self, run: ScheduledRun) -> list[ProblemTask]:
        """The next problems of a run: a fair share of them, and one that is under suspicion
        alone."""
        batch = [run.todo.popleft()]
        share = min(math.ceil((len(run.todo) + 1) / len(self._told)), _PROBLEMS_A_BATCH)
        timings = len(batch[0].task[1])
        while run.todo and len(batch) < share and not (batch[0].careful or run.todo[0].careful):
            timings += len(run.todo[0].task[1])
            if timings > _TIMINGS_A_BATCH:
                break
            batch.append(run.todo.popleft())
        return batch

    def _order(self, member: int, errand: ProblemTask) -> TimingRequest:
        news = tuple(self._bad[self._told[member] :])
        self._told[member] = len(self._bad)
        problem, candidates = errand.task
        failed = tuple(errand.failed)
        return TimingRequest(problem, candidates, news, errand.careful, errand.start, failed)

    def _take(
        self, event: JobResult[ProblemTask, TimingResult] | WorkerDied[ProblemTask]
    ) -> Iterator[TimedProblem]:
        if isinstance(event, WorkerDied):
            yield from self._lose(event)
            return
        run, done = event.job.run, event.answer
        self._starts = self._losses = 0
        run.problems += 1
        run.timings += len(done.dataset)
        run.timed_s += done.seconds
        run.stalled += done.stalled
        run.wrong += done.dataset.table.column("status").to_pylist().count("wrong")
        yield self._done(event.job, done.dataset)

    def _done(self, errand: ProblemTask, dataset: Dataset | None) -> TimedProblem:
        run = errand.run
        run.left -= 1
        if not run.left:
            self._runs.remove(run)
        return TimedProblem(run, errand.task[0], dataset)

    def _lose(self, event: WorkerDied[ProblemTask]) -> Iterator[TimedProblem]:
        """Find out whose fault it was; have the rest done by the next process."""
        self._told[event.member] = 0
        self.lost.append(event.reason)
        again = list(event.waiting)
        if event.mark == STARTING or event.job is None:
            self._starts += 1
            if self._starts >= _MOST_STARTS:
                raise WorkerError(
                    f"timing process: {event.reason} before its first problem, "
                    f"{self._starts} times in a row; look at the device (nvidia-smi)"
                )
            again = again if event.job is None else [event.job, *again]
        elif self._blame(event.job, event.mark, event.reason):
            again.insert(0, event.job)
        else:
            yield self._done(event.job, None)
        if not self._closing:
            for errand in reversed(again):
                errand.run.todo.appendleft(errand)

    def _blame(self, errand: ProblemTask, mark: int, reason: str) -> bool:
        """Note what is known now; whether the problem is worth another process."""
        if mark >= 0:
            self._losses = self._losses + 1 if mark == errand.start else 0
            if self._losses >= _MOST_LOSSES:
                raise WorkerError(
                    f"timing process: {reason}, {self._losses} times in a row, each time with "
                    "another candidate; look at the device (nvidia-smi)"
                )
            errand.failed.append(mark)
            errand.start = mark + 1
            self._condemn(errand, mark, reason)
        elif errand.careful:
            errand.blameless += 1
            errand.start = 0
        errand.careful = True
        return errand.blameless < _MOST_BLAMELESS

    def _condemn(self, errand: ProblemTask, number: int, reason: str) -> None:
        problem, candidates = errand.task
        candidate = candidates[number]
        if candidate.config is not None:
            with contextlib.suppress(KernelInfeasibleError):
                spec = self._setting.library.spec_for(problem, candidate)
                self._bad.append(CompileOutcome(spec, 0.0, error=reason))
