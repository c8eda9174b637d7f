"""Compiling kernels in other processes while the GPU times those that are ready."""

from __future__ import annotations

import functools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection

from torch_diode.collection.kernels.compile import CompileOutcome, Job, precompile
from torch_diode.collection.kernels.library import KernelSpec
from torch_diode.collection.workers.pool import JobResult, ProgressMarker, WorkerPool

_LONGEST_WAIT_S = 60.0


class CompileAhead:
    """Worker processes that compile jobs in order, and the outcomes so far.

    Has to be made before this process touches CUDA: forked workers must not inherit a context. A
    kernel that ends its compiler (ptxas and LLVM do crash) is an outcome like any other.
    """

    def __init__(self, jobs: Sequence[Job], arch: int, processes: int) -> None:
        self.outcomes: dict[KernelSpec, CompileOutcome] = {}
        self._queue: deque[Job] = deque(jobs)
        work = functools.partial(_compiler, arch)
        self._crew: WorkerPool[Job, CompileOutcome] = WorkerPool([work] * processes)

    def __enter__(self) -> CompileAhead:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def add(self, jobs: Iterable[Job]) -> None:
        """Compile these too, after those before them."""
        self._queue.extend(jobs)

    def hand_out(self) -> None:
        """Give every idle worker its next job."""
        for member in self._crew.idle():
            if not self._queue:
                return
            self._crew.give(member, [self._queue.popleft()])

    def handles(self) -> list[Connection]:
        """What to wait for before `read` has something to say."""
        return self._crew.handles()

    def read(self, timeout: float | None = 0) -> list[CompileOutcome]:
        """The outcomes that have come in, at most so long waited for; workers get new jobs."""
        found = []
        for event in self._crew.read(timeout):
            if isinstance(event, JobResult):
                found.append(event.answer)
            elif event.job is not None:
                found.append(CompileOutcome(event.job[1], 0.0, error=f"compiler {event.reason}"))
                self._queue.extendleft(reversed(event.waiting))
        self.outcomes.update({outcome.spec: outcome for outcome in found})
        self.hand_out()
        return found

    def finished(self) -> Iterator[CompileOutcome]:
        """All outcomes as they come, until every job is done."""
        self.hand_out()
        while self._queue or self._crew.at_work():
            yield from self.read(None)

    def wait_for(self, specs: Iterable[KernelSpec], seconds: float | None = None) -> bool:
        """Wait until all of these are compiled; False if that took longer than allowed."""
        wanted = set(specs)
        end = math.inf if seconds is None else time.monotonic() + seconds
        self.hand_out()
        while not wanted <= self.outcomes.keys():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.read(min(left, _LONGEST_WAIT_S))
        return True

    def stop(self) -> None:
        """End the workers; what is not compiled stays so."""
        self._crew.stop()


def _compiler(arch: int, _: ProgressMarker) -> Callable[[Job], CompileOutcome]:
    return lambda job: precompile(*job, arch)
