"""Compilation of kernels in worker processes while the GPU times those that are ready."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from torch_diode.collection.kernels.compile import CompileOutcome, Job, precompile
from torch_diode.collection.kernels.library import KernelSpec
from torch_diode.collection.workers.pool import JobResult, ProgressMarker, WorkerPool


class CompileAhead(WorkerPool[Job, CompileOutcome]):
    """Worker processes that compile jobs in order, and the outcomes so far.

    Create it before this process touches CUDA: forked workers must not inherit a context. A kernel
    that crashes its compiler (ptxas or LLVM) has an outcome with an error.
    """

    def __init__(self, jobs: Sequence[Job], arch: int, processes: int) -> None:
        super().__init__([functools.partial(_compiler, arch)] * processes)
        self.outcomes: dict[KernelSpec, CompileOutcome] = {}
        self._queue: deque[Job] = deque(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Append jobs to the queue."""
        self._queue.extend(jobs)

    def assign_jobs(self) -> None:
        """Send every idle worker its next job."""
        for worker in self.idle()[: len(self._queue)]:
            self.submit(worker, [self._queue.popleft()])

    def compiled(self, timeout: float | None = 0) -> list[CompileOutcome]:
        """Outcomes since the last call, after waiting up to `timeout` seconds; assigns new jobs."""
        outcomes = []
        for event in self.read(timeout):
            if isinstance(event, JobResult):
                outcomes.append(event.result)
            elif event.job is not None:
                outcomes.append(CompileOutcome(event.job[1], 0.0, error=f"compiler {event.reason}"))
                self._queue.extendleft(reversed(event.pending))
        self.outcomes.update({outcome.spec: outcome for outcome in outcomes})
        self.assign_jobs()
        return outcomes

    def as_completed(self) -> Iterator[CompileOutcome]:
        """Yield outcomes until every job is done."""
        self.assign_jobs()
        while self._queue or self.unfinished_jobs():
            yield from self.compiled(None)


def _compiler(arch: int, _: ProgressMarker) -> Callable[[Job], CompileOutcome]:
    return lambda job: precompile(*job, arch)
