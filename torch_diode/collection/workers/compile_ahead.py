"""Compilation of kernels in worker processes: while a GPU times those that are ready, and before a
CPU times any."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torch_diode.collection.kernels.compile import Job, precompile
from torch_diode.collection.kernels.cpp import CppJob
from torch_diode.collection.kernels.outcome import CompileOutcome
from torch_diode.collection.workers.pool import JobResult, ProgressMarker, WorkerPool

AnyJob = Job | CppJob


class CompileAhead(WorkerPool[AnyJob, CompileOutcome]):
    """Worker processes that compile jobs in order, and the outcomes so far.

    Create it before this process touches CUDA: forked workers must not inherit a context. With
    `fresh` they are new interpreters. A kernel that crashes its compiler has an outcome with an
    error.
    """

    def __init__(
        self, jobs: Sequence[AnyJob], arch: int, processes: int, fresh: bool = False
    ) -> None:
        super().__init__([functools.partial(_compiler, arch)] * processes, fresh)
        self.outcomes: dict[Any, CompileOutcome] = {}
        self.paused = False
        """Start no new job."""
        self._queue: deque[AnyJob] = deque(jobs)

    def add(self, jobs: Iterable[AnyJob]) -> None:
        """Append jobs to the queue."""
        self._queue.extend(jobs)

    def assign_jobs(self) -> None:
        """Send every idle worker its next job, unless paused."""
        for worker in [] if self.paused else self.idle()[: len(self._queue)]:
            self.submit(worker, [self._queue.popleft()])

    def compiled(self, timeout: float | None = 0) -> list[CompileOutcome]:
        """Outcomes since the last call, after waiting up to `timeout` seconds; assigns new jobs."""
        outcomes = []
        for event in self.read(timeout):
            if isinstance(event, JobResult):
                outcomes.append(event.result)
            elif event.job is not None:
                error = f"compiler {event.reason}"
                outcomes.append(CompileOutcome(_spec(event.job), 0.0, error=error))
                self._queue.extendleft(reversed(event.pending))
        self.outcomes.update({outcome.spec: outcome for outcome in outcomes})
        self.assign_jobs()
        return outcomes

    def as_completed(self) -> Iterator[CompileOutcome]:
        """Yield outcomes until every job is done."""
        self.assign_jobs()
        while self._queue or self.unfinished_jobs():
            yield from self.compiled(None)


def _spec(job: AnyJob) -> Any:
    return job.spec if isinstance(job, CppJob) else job[1]


def _compiler(arch: int, _: ProgressMarker) -> Callable[[AnyJob], CompileOutcome]:
    return lambda job: job.run() if isinstance(job, CppJob) else precompile(*job, arch)
