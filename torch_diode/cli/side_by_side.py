"""Several networks trained side by side, a process for each.

A network this small keeps one core busy and a GPU hardly at all: most of the time goes into telling
it what to do. What a process reaches is in the state file it keeps, as that of a run that is
killed; whoever asked goes on from there. So a process that ends early costs time and nothing else,
and where processes cannot be forked the networks are trained one after the other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

import torch

from torch_diode.cli.output import say
from torch_diode.cli.progress import TrainingProgress
from torch_diode.collection.forking import can_fork
from torch_diode.collection.lifeline import end_with
from torch_diode.types.errors import DiodeError

Tell = Callable[[Mapping[str, float]], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Job(Generic[Result]):
    """A network to train, what it is called, and how often it goes through the data."""

    name: str
    epochs: int
    train: Callable[[Tell], Result]


def side_by_side(jobs: Sequence[Job[Any]]) -> None:
    """Start all of them, as many at a time as there are cores, the first ones first."""
    processes = min(len(jobs), os.cpu_count() or 1)
    if processes < 2 or not can_fork():
        return
    say(f"{len(jobs)} networks, {processes} side by side")
    waiting = list(jobs)
    running: dict[Connection, tuple[Job[Any], BaseProcess]] = {}
    with TrainingProgress(sum(job.epochs for job in jobs), total=True) as progress:
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    job = waiting.pop(0)
                    connection, process = _start(job)
                    running[connection] = job, process
                for ready in wait(list(running)):
                    assert isinstance(ready, Connection)
                    if not _hear(ready, running[ready][0], progress):
                        running.pop(ready)[1].join()
        finally:
            for _, process in running.values():
                process.kill()
                process.join()


def _start(job: Job[Any]) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_life, args=(job, theirs, os.getpid()))
    process.start()
    theirs.close()
    return ours, process


def _life(job: Job[Any], connection: Connection, parent: int) -> None:
    end_with(parent)
    # Ctrl-C reaches the whole process group; what then happens is the parent's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # More would not work: threads of OpenMP do not come along with a fork.
    torch.set_num_threads(1)
    try:
        job.train(connection.send)
    except (DiodeError, RuntimeError) as fault:
        connection.send((str(fault).splitlines() or [type(fault).__name__])[0])


def _hear(connection: Connection, job: Job[Any], progress: TrainingProgress) -> bool:
    """Whether there may be more to hear."""
    try:
        told = connection.recv()
    except (EOFError, ConnectionResetError):
        connection.close()
        return False
    if isinstance(told, str):
        say(f"{job.name}: stopped ({told:.160}); to be gone on with after the others")
    else:
        progress.tell(told)
    return True
