"""A pool of worker processes that reports which job ended a worker.

Workers are forked from a process that never touches CUDA. Each gets a few jobs at a time and
processes them in order, so the first one without a result is the one in progress. A worker writes
its progress within that job, and the parent a flag that stops all workers, to shared memory.
"""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import signal
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from torch_diode.collection.workers.fork_safety import holds_gpu
from torch_diode.collection.workers.parent_death import die_with_parent
from torch_diode.types.errors import DiodeError, FileFaultError

Job = TypeVar("Job")
Result = TypeVar("Result")

STARTING, WORKING = -2, -1
_SLOT = struct.Struct("q")
_SOFTWARE_FAULT = 1
"""Exit code of a Python process that ended with a traceback."""


class ForkAfterCudaError(DiodeError):
    """Worker processes cannot be forked from a process that holds a CUDA context."""


class WorkerError(DiodeError):
    """Worker processes fail repeatedly, or for a reason other than a kernel."""


class ProgressMarker:
    """A number the worker sets and the parent can read even after the worker has died."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOT.size)
        self.set(STARTING)

    def set(self, value: int) -> None:
        """Record the step of the current job."""
        _SLOT.pack_into(self._memory, 0, value)

    def get(self) -> int:
        """The last step recorded."""
        return int(_SLOT.unpack_from(self._memory, 0)[0])


class StopFlag:
    """A flag the parent sets once and workers read before each job."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    def set(self) -> None:
        """Have workers start no further job."""
        self._memory[0] = 1

    def is_set(self) -> bool:
        """True if jobs not started yet are to be dropped."""
        return self._memory[0] != 0


HandlerFactory = Callable[[ProgressMarker], Callable[[Any], Any]]
"""Called once in the worker; returns the function that processes each job."""


@dataclass(frozen=True)
class WorkerUnusable:
    """Last message of a worker: its job raised an error that leaves the process unusable."""

    reason: str


@dataclass(frozen=True)
class PoolStopped:
    """Message of a worker that has dropped the rest of its jobs."""


@dataclass(frozen=True)
class JobResult(Generic[Job, Result]):
    """A job and its result."""

    worker: int
    job: Job
    result: Result


@dataclass(frozen=True)
class WorkerDied(Generic[Job]):
    """A worker ended: its job, the progress in it, the jobs it had not started, and the reason."""

    worker: int
    job: Job | None
    progress: int
    pending: tuple[Job, ...]
    reason: str


@dataclass
class _Worker(Generic[Job]):
    process: BaseProcess
    connection: Connection
    progress: ProgressMarker
    jobs: deque[Job] = field(default_factory=deque)


class WorkerPool(Generic[Job, Result]):
    """One worker process per handler factory; one that ends is replaced at its next job."""

    def __init__(self, factories: Sequence[HandlerFactory]) -> None:
        if holds_gpu():
            raise ForkAfterCudaError(
                "workers: got a process that has used CUDA; expected one that has not, since its "
                "forked processes could not use the GPU; start them before the first CUDA call"
            )
        self._factories = list(factories)
        self._stop_flag = StopFlag()
        self._workers: list[_Worker[Job] | None] = [None] * len(factories)

    def __enter__(self) -> WorkerPool[Job, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __len__(self) -> int:
        return len(self._factories)

    def start(self) -> None:
        """Start all workers not running yet, before there is a job for them."""
        for index, worker in enumerate(self._workers):
            if worker is None:
                self._start(index)

    def idle(self) -> list[int]:
        """Indices of the workers without a job."""
        return [i for i, worker in enumerate(self._workers) if worker is None or not worker.jobs]

    def unfinished_jobs(self) -> list[Job]:
        """Jobs submitted that have no result yet."""
        return [job for worker in self._workers if worker for job in worker.jobs]

    def pids(self) -> list[int]:
        """Process ids of the running workers."""
        return [worker.process.pid or 0 for worker in self._workers if worker]

    def submit(
        self, index: int, jobs: Sequence[Job], messages: Sequence[Any] | None = None
    ) -> None:
        """Send jobs, or the messages that stand for them, to an idle worker.

        The worker is waiting for them, so this cannot block for long.
        """
        worker = self._workers[index] or self._start(index)
        worker.jobs.extend(jobs)
        # A worker that has ended meanwhile does not take them; `read` reports it.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            worker.connection.send(list(jobs if messages is None else messages))

    def drop_pending(self) -> None:
        """Drop all jobs but the one each worker is processing; `read` until none is unfinished."""
        self._stop_flag.set()

    def connections(self) -> list[Connection]:
        """Connections to wait on before calling `read`."""
        return [worker.connection for worker in self._workers if worker]

    def read(self, timeout: float | None = 0) -> Iterator[JobResult[Job, Result] | WorkerDied[Job]]:
        """Yield results and worker deaths; waits for the first one up to `timeout` seconds."""
        ready = set(wait(self.connections(), timeout))
        for index, worker in enumerate(self._workers):
            if worker and worker.connection in ready:
                yield from self._read(index, worker)

    def _read(
        self, index: int, worker: _Worker[Job]
    ) -> Iterator[JobResult[Job, Result] | WorkerDied[Job]]:
        """Yield everything a worker has sent, so that an idle one can get new jobs at once."""
        while self._workers[index] is worker and worker.connection.poll():
            try:
                message = worker.connection.recv()
            except (EOFError, ConnectionResetError):
                yield self._remove_dead(index, worker, "")
                return
            if isinstance(message, DiodeError):
                raise message
            if isinstance(message, WorkerUnusable):
                yield self._remove_dead(index, worker, message.reason)
                return
            if isinstance(message, PoolStopped):
                worker.jobs.clear()
            else:
                yield JobResult(index, worker.jobs.popleft(), message)

    def _remove_dead(self, index: int, worker: _Worker[Job], reason: str) -> WorkerDied[Job]:
        worker.process.join()
        worker.connection.close()
        self._workers[index] = None
        code = worker.process.exitcode or 0
        if not reason and code == _SOFTWARE_FAULT:
            raise WorkerError(
                "worker process: ended with the error printed above; expected it to continue; "
                "all finished problems are kept"
            )
        first = worker.jobs.popleft() if worker.jobs else None
        return WorkerDied(
            index, first, worker.progress.get(), tuple(worker.jobs), reason or _exit_reason(code)
        )

    def _start(self, index: int) -> _Worker[Job]:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        progress = ProgressMarker()
        arguments = (theirs, progress, self._stop_flag, self._factories[index], os.getpid())
        process = context.Process(target=_serve, args=arguments)
        process.start()
        theirs.close()
        worker: _Worker[Job] = _Worker(process, ours, progress)
        self._workers[index] = worker
        return worker

    def stop(self) -> None:
        """Kill all workers, whatever they are doing."""
        workers = [worker for worker in self._workers if worker]
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()
            worker.connection.close()
        self._workers = [None] * len(self._factories)


def _serve(
    connection: Connection,
    progress: ProgressMarker,
    stop_flag: StopFlag,
    factory: HandlerFactory,
    parent: int,
) -> None:
    """Main function of a worker process."""
    die_with_parent(parent)
    # Ctrl-C reaches the whole process group; the parent decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = factory(progress)
    while True:
        try:
            jobs = connection.recv()
        except EOFError:
            return
        for job in jobs:
            if stop_flag.is_set():
                connection.send(PoolStopped())
                break
            progress.set(WORKING)
            _process(connection, handler, job)


def _process(connection: Connection, handler: Callable[[Any], Any], job: Any) -> None:
    try:
        connection.send(handler(job))
    except DiodeError as fault:
        connection.send(fault)
    except BrokenPipeError:
        os._exit(0)
    except OSError as fault:
        where, why = fault.filename or "worker", fault.strerror or fault
        message = f"{where}: {why}; all finished problems are kept: run the same command again"
        connection.send(FileFaultError(message))
    except RuntimeError as fault:
        # A GPU error is sticky: every later call would fail with it, the clean-up too.
        connection.send(WorkerUnusable(f"{type(fault).__name__}: {fault}".splitlines()[0]))
        os._exit(0)


def _exit_reason(code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
