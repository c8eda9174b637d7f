"""Compilation of kernels in worker processes while the GPU times those that are ready."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection

from torch_diode.collection.kernels.compile import CompileOutcome, Job, precompile
from torch_diode.collection.kernels.library import KernelSpec
from torch_diode.collection.workers.pool import JobResult, ProgressMarker, WorkerPool


class CompileAhead:
    """Worker processes that compile jobs in order, and the outcomes so far.

    Create it before this process touches CUDA: forked workers must not inherit a context. A kernel
    that crashes its compiler (ptxas or LLVM) has an outcome with an error.
    """

    def __init__(self, jobs: Sequence[Job], arch: int, processes: int) -> None:
        self.outcomes: dict[KernelSpec, CompileOutcome] = {}
        self._queue: deque[Job] = deque(jobs)
        factory = functools.partial(_compiler, arch)
        self._pool: WorkerPool[Job, CompileOutcome] = WorkerPool([factory] * processes)

    def __enter__(self) -> CompileAhead:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def add(self, jobs: Iterable[Job]) -> None:
        """Append jobs to the queue."""
        self._queue.extend(jobs)

    def assign_jobs(self) -> None:
        """Send every idle worker its next job."""
        for worker in self._pool.idle():
            if not self._queue:
                return
            self._pool.submit(worker, [self._queue.popleft()])

    def connections(self) -> list[Connection]:
        """Connections to wait on before calling `read`."""
        return self._pool.connections()

    def read(self, timeout: float | None = 0) -> list[CompileOutcome]:
        """Outcomes since the last call, after waiting up to `timeout` seconds; assigns new jobs."""
        outcomes = []
        for event in self._pool.read(timeout):
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
        while self._queue or self._pool.unfinished_jobs():
            yield from self.read(None)

    def stop(self) -> None:
        """Kill the workers and drop the remaining jobs."""
        self._pool.stop()


def _compiler(arch: int, _: ProgressMarker) -> Callable[[Job], CompileOutcome]:
    return lambda job: precompile(*job, arch)
