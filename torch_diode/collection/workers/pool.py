"""Worker processes that answer jobs, and what is known of a job that ended its worker.

Workers are forked from a process that never touches CUDA. Each is handed a few jobs at a time and
answers them in order, so the first unanswered one is the one in progress. How far it is within
that job a worker writes into memory it shares with the parent: a store, not a message. In the same
way the parent tells all workers to begin no further job.
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
Answer = TypeVar("Answer")

STARTING, WORKING = -2, -1
_SLOT = struct.Struct("q")
_SOFTWARE_FAULT = 1
"""The exit code of a Python process that ended with a traceback."""


class ForkAfterCudaError(DiodeError):
    """Worker processes were asked for by a process that already holds a CUDA context."""


class WorkerError(DiodeError):
    """Worker processes end again and again, or for a reason that is no kernel's."""


class ProgressMarker:
    """A number the worker sets and the parent reads, also after the worker is gone."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOT.size)
        self.set(STARTING)

    def set(self, value: int) -> None:
        """Where the worker is: at this step of its job."""
        _SLOT.pack_into(self._memory, 0, value)

    def get(self) -> int:
        """Where the worker is, or was when it ended."""
        return int(_SLOT.unpack_from(self._memory, 0)[0])


class StopFlag:
    """What the parent sets once, and workers look at before each job."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    def set(self) -> None:
        """From now on no worker begins a job."""
        self._memory[0] = 1

    def is_set(self) -> bool:
        """Whether jobs that are not begun are to be dropped."""
        return self._memory[0] != 0


Work = Callable[[ProgressMarker], Callable[[Any], Any]]
"""Called once in the worker; what it returns answers each job."""


@dataclass(frozen=True)
class WorkerUnusable:
    """A worker's last word: its job raised what leaves the process unusable."""

    reason: str


@dataclass(frozen=True)
class PoolStopped:
    """What a worker says that has dropped the rest of its jobs."""


@dataclass(frozen=True)
class JobResult(Generic[Job, Answer]):
    """A job and what came of it."""

    member: int
    job: Job
    answer: Answer


@dataclass(frozen=True)
class WorkerDied(Generic[Job]):
    """A worker ended: the job it was at, at which mark, those it had not begun, and why."""

    member: int
    job: Job | None
    mark: int
    waiting: tuple[Job, ...]
    reason: str


@dataclass
class _Worker(Generic[Job]):
    process: BaseProcess
    connection: Connection
    mark: ProgressMarker
    jobs: deque[Job] = field(default_factory=deque)


class WorkerPool(Generic[Job, Answer]):
    """One worker process for each `Work`; a worker that ends is replaced when it is next given
    a job."""

    def __init__(self, works: Sequence[Work]) -> None:
        if holds_gpu():
            raise ForkAfterCudaError(
                "workers: got a process that has used CUDA; expected one that has not, since what "
                "it forks cannot; start them before the first CUDA call"
            )
        self._works = list(works)
        self._halt = StopFlag()
        self._members: list[_Worker[Job] | None] = [None] * len(works)

    def __enter__(self) -> WorkerPool[Job, Answer]:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __len__(self) -> int:
        return len(self._works)

    def start(self) -> None:
        """Start all that are not: they get ready while there is no job yet."""
        for number, member in enumerate(self._members):
            if member is None:
                self._start(number)

    def idle(self) -> list[int]:
        """The members that have nothing to do."""
        return [i for i, member in enumerate(self._members) if member is None or not member.jobs]

    def at_work(self) -> list[Job]:
        """The jobs that are given and not answered."""
        return [job for member in self._members if member for job in member.jobs]

    def pids(self) -> list[int]:
        """The processes there are."""
        return [member.process.pid or 0 for member in self._members if member]

    def give(self, member: int, jobs: Sequence[Job], messages: Sequence[Any] | None = None) -> None:
        """Hand jobs to an idle member, or what stands for each of them there.

        It is waiting for them, so this cannot block for long.
        """
        worker = self._members[member] or self._start(member)
        worker.jobs.extend(jobs)
        # A worker that has ended meanwhile does not take them: `read` finds that out.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            worker.connection.send(list(jobs if messages is None else messages))

    def halt(self) -> None:
        """Have the job each worker is at answered, and the others dropped: `read` on until nobody
        is at work."""
        self._halt.set()

    def handles(self) -> list[Connection]:
        """What to wait for before `read` has something to say."""
        return [member.connection for member in self._members if member]

    def read(self, timeout: float | None = 0) -> Iterator[JobResult[Job, Answer] | WorkerDied[Job]]:
        """What has happened; waits for something to happen at most so long."""
        ready = set(wait(self.handles(), timeout))
        for number, member in enumerate(self._members):
            if member and member.connection in ready:
                yield from self._read(number, member)

    def _read(
        self, number: int, member: _Worker[Job]
    ) -> Iterator[JobResult[Job, Answer] | WorkerDied[Job]]:
        """All that a member has said: who is done with everything can be given more at once."""
        while self._members[number] is member and member.connection.poll():
            try:
                answer = member.connection.recv()
            except (EOFError, ConnectionResetError):
                yield self._lose(number, member, "")
                return
            if isinstance(answer, DiodeError):
                raise answer
            if isinstance(answer, WorkerUnusable):
                yield self._lose(number, member, answer.reason)
                return
            if isinstance(answer, PoolStopped):
                member.jobs.clear()
            else:
                yield JobResult(number, member.jobs.popleft(), answer)

    def _lose(self, number: int, member: _Worker[Job], reason: str) -> WorkerDied[Job]:
        member.process.join()
        member.connection.close()
        self._members[number] = None
        code = member.process.exitcode or 0
        if not reason and code == _SOFTWARE_FAULT:
            raise WorkerError(
                "worker process: ended with the error printed above; expected it to go on; "
                "all finished problems are kept"
            )
        first = member.jobs.popleft() if member.jobs else None
        return WorkerDied(
            number, first, member.mark.get(), tuple(member.jobs), reason or _ending(code)
        )

    def _start(self, number: int) -> _Worker[Job]:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        mark = ProgressMarker()
        arguments = (theirs, mark, self._halt, self._works[number], os.getpid())
        process = context.Process(target=_serve, args=arguments)
        process.start()
        theirs.close()
        member: _Worker[Job] = _Worker(process, ours, mark)
        self._members[number] = member
        return member

    def stop(self) -> None:
        """End all workers, whatever they are at."""
        members = [member for member in self._members if member]
        for member in members:
            member.process.kill()
        for member in members:
            member.process.join()
            member.connection.close()
        self._members = [None] * len(self._works)


def _serve(
    connection: Connection, mark: ProgressMarker, halt: StopFlag, work: Work, parent: int
) -> None:
    """A worker's life."""
    die_with_parent(parent)
    # Ctrl-C reaches the whole process group; what then happens is the parent's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer = work(mark)
    while True:
        try:
            jobs = connection.recv()
        except EOFError:
            return
        for job in jobs:
            if halt.is_set():
                connection.send(PoolStopped())
                break
            mark.set(WORKING)
            _answer(connection, answer, job)


def _answer(connection: Connection, answer: Callable[[Any], Any], job: Any) -> None:
    try:
        connection.send(answer(job))
    except DiodeError as fault:
        connection.send(fault)
    except BrokenPipeError:
        os._exit(0)
    except OSError as fault:
        where, why = fault.filename or "worker", fault.strerror or fault
        sentence = f"{where}: {why}; all finished problems are kept: run the same command again"
        connection.send(FileFaultError(sentence))
    except RuntimeError as fault:
        # An error of the GPU stays: every later call would fail with it, the clean-up too.
        connection.send(WorkerUnusable(f"{type(fault).__name__}: {fault}".splitlines()[0]))
        os._exit(0)


def _ending(code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
