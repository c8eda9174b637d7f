"""A pool of worker processes that reports which job ended a worker.

Each worker gets a few jobs at a time and processes them in order, so the first one without a result
is the one in progress. What a worker has sent can be read even after it has died, and so can its
progress within that job.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from torch_diode.collection.workers.fork_safety import holds_gpu
from torch_diode.collection.workers.interpreter import Interpreter
from torch_diode.collection.workers.parent_death import die_with_parent
from torch_diode.types.errors import DiodeError, FileFaultError

Job = TypeVar("Job")
Result = TypeVar("Result")

STARTING, WORKING = -2, -1
_READY, _RESULT, _PROGRESS, _DROPPED, _UNUSABLE = range(5)
"""Kinds of messages of a worker."""
_SOFTWARE_FAULT = 1
"""Exit code of a Python process that ended with a traceback."""


class ForkAfterCudaError(DiodeError):
    """Worker processes cannot be forked from a process that holds a CUDA context."""


class WorkerError(DiodeError):
    """Worker processes fail repeatedly, or for a reason other than a kernel."""


ProgressMarker = Callable[[Any], None]
"""Called by a worker with its progress in the current job, for the parent to know."""
HandlerFactory = Callable[[ProgressMarker], Callable[[Any], Any]]
"""Called once in the worker; returns the function that processes each job."""


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
    progress: Any
    pending: tuple[Job, ...]
    reason: str


@dataclass
class _Worker(Generic[Job]):
    process: BaseProcess | Interpreter
    connection: Connection
    progress: Any = STARTING
    jobs: deque[Job] = field(default_factory=deque)


class WorkerPool(Generic[Job, Result]):
    """One worker process per handler factory; one that ends is replaced at its next job.

    Workers are forked. With `fresh` they are new interpreters, and the factories are sent to them:
    a forked process cannot use the threads that OpenMP has started in this one.
    """

    def __init__(
        self,
        factories: Sequence[HandlerFactory],
        fresh: bool = False,
        on_progress: Callable[[Job, Any], None] | None = None,
    ) -> None:
        if holds_gpu() and not fresh:
            raise ForkAfterCudaError(
                "workers: got a process that has used CUDA; expected one that has not, since its "
                "forked processes could not use the GPU; start them before the first CUDA call"
            )
        self._factories = list(factories)
        self._fresh = fresh
        self._on_progress = on_progress
        self._stopping = False
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
        if not self._stopping:
            worker = self._workers[index] or self._start(index)
            worker.jobs.extend(jobs)
            _send(worker, list(jobs if messages is None else messages))

    def drop_pending(self) -> None:
        """Drop all jobs but the one each worker is processing; `read` until none is unfinished."""
        self._stopping = True
        for worker in self._workers:
            if worker and worker.jobs:
                _send(worker, [])

    def connections(self) -> list[Connection]:
        """Connections to wait on before calling `read`."""
        return [worker.connection for worker in self._workers if worker]

    def read(self, timeout: float | None = 0) -> Iterator[JobResult[Job, Result] | WorkerDied[Job]]:
        """Yield results and worker deaths; waits for a message up to `timeout` seconds."""
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
                kind, content = worker.connection.recv()
            except (EOFError, OSError):  # OSError: killed within a message
                kind, content = _UNUSABLE, ""
            if isinstance(content, DiodeError):
                raise content
            if kind == _UNUSABLE:
                yield self._remove_dead(index, worker, content)
            elif kind == _DROPPED:
                worker.jobs.clear()
            elif kind == _PROGRESS:
                worker.progress = content
                if self._on_progress is not None:
                    self._on_progress(worker.jobs[0], content)
            else:
                worker.progress = WORKING
                if kind == _RESULT:
                    yield JobResult(index, worker.jobs.popleft(), content)

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
        pending = tuple(worker.jobs)
        return WorkerDied(index, first, worker.progress, pending, reason or _exit_reason(code))

    def _start(self, index: int) -> _Worker[Job]:
        serve = functools.partial(_serve, self._factories[index], os.getpid())
        if self._fresh:
            interpreter = Interpreter(serve)
            worker = _Worker[Job](interpreter, interpreter.connection)
        else:
            context = multiprocessing.get_context("fork")
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,))
            process.start()
            theirs.close()
            worker = _Worker[Job](process, ours)
        self._workers[index] = worker
        return worker

    def stop(self, *indices: int) -> None:
        """Kill these workers, or all, whatever they are doing."""
        chosen = indices or range(len(self._workers))
        workers = [worker for index in chosen if (worker := self._workers[index])]
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()
            worker.connection.close()
        for index in chosen:
            self._workers[index] = None


def _send(worker: _Worker[Any], jobs: list[Any]) -> None:
    # A worker that has ended meanwhile does not take them; `read` reports it.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        worker.connection.send(jobs)


def _serve(factory: HandlerFactory, parent: int, connection: Connection) -> None:
    """Main function of a worker process; an empty list of jobs drops those before."""
    die_with_parent(parent)
    # Ctrl-C reaches the whole process group; the parent decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = factory(lambda progress: connection.send((_PROGRESS, progress)))
    jobs: deque[Any] = deque()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        connection.send((_READY, None))
        while True:
            if not jobs or connection.poll():
                jobs = deque(connection.recv())
                if not jobs:
                    connection.send((_DROPPED, None))
            else:
                _process(connection, handler, jobs.popleft())


def _process(connection: Connection, handler: Callable[[Any], Any], job: Any) -> None:
    try:
        connection.send((_RESULT, handler(job)))
    except DiodeError as fault:
        connection.send((_RESULT, fault))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except OSError as fault:
        where, why = fault.filename or "worker", fault.strerror or fault
        message = f"{where}: {why}; all that is finished is kept: run the same command again"
        connection.send((_RESULT, FileFaultError(message)))
    except (MemoryError, RuntimeError) as fault:
        # A GPU error is sticky: every later call would fail with it, the clean-up too.
        connection.send((_UNUSABLE, f"{type(fault).__name__}: {fault}".splitlines()[0]))
        os._exit(0)


def _exit_reason(code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
