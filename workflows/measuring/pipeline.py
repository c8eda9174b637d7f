"""Problems on their way through two worker pools: one without a GPU compiles their kernels, one
with it times them.

A job prepares a problem and returns the kernels it needs. Each kernel is a job of its own, once for
all problems that need it. A problem is timed as soon as its kernels are compiled; near the
deadline, with those that are.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Protocol

from torch_diode.collection.workers.pool import JobResult, WorkerDied, WorkerError, WorkerPool
from workflows.measuring.jobs import Failed

LAST_SECONDS = 12.0
"""Before the deadline: from then on a part of a problem's kernels may be enough."""
GRACE_S = 5.0
"""After the deadline: grace period for running timings."""
SAVE_EVERY_S = 10.0


class PipelineSpec(Protocol):
    """Steps of a run. Requests are sent to a process; keys identify a kernel."""

    def prepare(self, number: int) -> Any:
        """Request that prepares a problem."""

    def kernels(self, number: int, answer: Any) -> Mapping[Hashable, Any]:
        """The problem's kernels with the request that compiles each, the most important first."""

    def compiled(self, key: Hashable, answer: Any) -> str:
        """Reason why a kernel cannot be used, or empty."""

    def is_enough(self, number: int, keys: Sequence[Hashable]) -> bool:
        """True if a problem is worth timing with these kernels alone."""

    def time(self, number: int, keys: Sequence[Hashable]) -> Any:
        """Request that times a problem with these kernels."""

    def timed(self, number: int, answer: Any) -> None:
        """Store a problem's times."""

    def save(self) -> None:
        """Save the results so far."""


@dataclass(frozen=True)
class _Prepare:
    number: int


@dataclass(frozen=True)
class _Compile:
    key: Hashable
    request: Any


class Pipeline:
    """Schedules jobs until all problems are timed or the time is up."""

    def __init__(self, recipe: PipelineSpec, numbers: Iterable[int], faults: Counter[str]) -> None:
        """`faults` counts errors."""
        self._spec, self._faults = recipe, faults
        self._needs: dict[int, Sequence[Hashable] | None] = dict.fromkeys(numbers)
        """Kernels per problem not timed yet; None until it is prepared."""
        self._queue: deque[_Prepare | _Compile] = deque(map(_Prepare, self._needs))
        self._requested: set[Hashable] = set()
        self._usable: dict[Hashable, bool] = {}
        """Result per compiled kernel."""
        self._at_bench: set[int] = set()
        self._saved = time.monotonic()

    def run(
        self, compilers: WorkerPool[Any, Any], benches: WorkerPool[Any, Any], deadline: float
    ) -> None:
        """Run until done or until the deadline (`time.monotonic`); always save the results."""
        try:
            compilers.start()
            while self._needs and (left := deadline - time.monotonic()) > 0:
                self._hand_out(compilers, benches, late=left < LAST_SECONDS)
                wait(compilers.connections() + benches.connections(), min(left, 0.5))
                for made in compilers.read():
                    self._made(made)
                for timed in benches.read():
                    self._timed(timed)
                self._save_now_and_then()
            while self._at_bench and time.monotonic() < deadline + GRACE_S:
                for timed in benches.read(0.5):
                    self._timed(timed)
        finally:
            self._spec.save()

    def _hand_out(
        self, compilers: WorkerPool[Any, Any], benches: WorkerPool[Any, Any], late: bool
    ) -> None:
        for member in compilers.idle():
            if self._queue:
                job = self._queue.popleft()
                compilers.submit(member, [job], [self._order(job)])
        for member in benches.idle():
            number = next((n for n in self._needs if self._is_ready(n, late)), None)
            if number is not None:
                self._at_bench.add(number)
                benches.submit(member, [number], [self._spec.time(number, self._there(number))])

    def _order(self, job: _Prepare | _Compile) -> Any:
        return self._spec.prepare(job.number) if isinstance(job, _Prepare) else job.request

    def _there(self, number: int) -> list[Hashable]:
        return [key for key in self._needs[number] or () if self._usable.get(key)]

    def _is_ready(self, number: int, late: bool) -> bool:
        needs = self._needs[number]
        if needs is None or number in self._at_bench:
            return False
        if all(key in self._usable for key in needs):
            return True
        return late and self._spec.is_enough(number, self._there(number))

    def _made(self, event: JobResult[Any, Any] | WorkerDied[Any]) -> None:
        answer = (
            event.result if isinstance(event, JobResult) else Failed(f"compiler {event.reason}")
        )
        if isinstance(event, WorkerDied):
            self._queue.extendleft(reversed(event.pending))
        if isinstance(event.job, _Prepare):
            self._prepared(event.job.number, answer)
        elif isinstance(event.job, _Compile):
            key, failed = event.job.key, isinstance(answer, Failed)
            fault = answer.reason if failed else self._spec.compiled(key, answer)
            self._usable[key] = not fault
            if fault:
                self._faults[_short(fault)] += 1
        else:
            self._faults[_short(answer.reason)] += 1

    def _prepared(self, number: int, answer: Any) -> None:
        if isinstance(answer, Failed):
            self._faults[f"lowering: {_short(answer.reason)}"] += 1
            del self._needs[number]
            return
        requests = self._spec.kernels(number, answer)
        self._needs[number] = tuple(requests)
        new = [_Compile(key, requests[key]) for key in requests if key not in self._requested]
        self._requested.update(job.key for job in new)
        # In front: a started problem is finished before the next.
        self._queue.extendleft(reversed(new))

    def _timed(self, event: JobResult[Any, Any] | WorkerDied[Any]) -> None:
        if event.job is None:
            why = event.reason if isinstance(event, WorkerDied) else "ended"
            raise WorkerError(f"timing process: {why} with nothing to do; look at the device")
        del self._needs[event.job]
        self._at_bench.discard(event.job)
        if isinstance(event, WorkerDied):
            self._faults[_short(f"bench: {event.reason}")] += 1
        elif isinstance(event.result, Failed):
            self._faults[_short(f"bench: {event.result.reason}")] += 1
        else:
            self._spec.timed(event.job, event.result)

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self._saved > SAVE_EVERY_S:
            self._spec.save()
            self._saved = time.monotonic()


def _short(text: str) -> str:
    return (text.splitlines() or [""])[0][:100]
