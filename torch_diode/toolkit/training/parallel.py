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

from torch_diode.cli.console.output import print_line
from torch_diode.cli.console.progress import TrainingProgress
from torch_diode.collection.workers.fork_safety import can_fork
from torch_diode.collection.workers.parent_death import die_with_parent
from torch_diode.types.errors import DiodeError

Tell = Callable[[Mapping[str, float]], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class TrainingJob(Generic[Result]):
    """A network to train, what it is called, and how often it goes through the data."""

    name: str
    epochs: int
    train: Callable[[Tell], Result]


def train_in_parallel(jobs: Sequence[TrainingJob[Any]]) -> None:
    """Start all of them, as many at a time as there are cores, the first ones first. What is wrong
    with what was asked for is raised as soon as one finds it."""
    processes = min(len(jobs), os.cpu_count() or 1)
    if processes < 2 or not can_fork():
        print_line(f"{len(jobs)} networks, one after the other")
        return
    print_line(f"{len(jobs)} networks, {processes} side by side")
    waiting = list(jobs)
    running: dict[Connection, tuple[TrainingJob[Any], BaseProcess]] = {}
    with TrainingProgress(sum(job.epochs for job in jobs), several=True) as progress:
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    job = waiting.pop(0)
                    connection, process = _start(job)
                    running[connection] = job, process
                for ready in wait(list(running)):
                    assert isinstance(ready, Connection)
                    if not _hear(ready, running[ready][0], progress):
                        _end(*running.pop(ready), progress)
        finally:
            for _, process in running.values():
                process.kill()
            for _, process in running.values():
                process.join()


def _start(job: TrainingJob[Any]) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    # A daemon: Python ends it, should this process not get as far as doing so itself.
    process = context.Process(target=_life, args=(job, theirs, os.getpid()), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _life(job: TrainingJob[Any], connection: Connection, parent: int) -> None:
    die_with_parent(parent)
    # Ctrl-C reaches the whole process group; what then happens is the parent's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # More would not work: threads of OpenMP do not come along with a fork.
    torch.set_num_threads(1)
    try:
        job.train(connection.send)
    except DiodeError as fault:
        connection.send(fault)
    except RuntimeError as fault:
        # Such as no room for one more on the GPU.
        connection.send((str(fault).splitlines() or [type(fault).__name__])[0])


def _hear(connection: Connection, job: TrainingJob[Any], progress: TrainingProgress) -> bool:
    """Whether there may be more to hear."""
    try:
        told = connection.recv()
    except (EOFError, ConnectionResetError):
        connection.close()
        return False
    if isinstance(told, DiodeError):
        raise told
    if isinstance(told, str):
        _say_stopped(job, told)
    else:
        progress.tell(told, job.name)
    return True


def _end(job: TrainingJob[Any], process: BaseProcess, progress: TrainingProgress) -> None:
    process.join()
    code = process.exitcode or 0
    if code:
        _say_stopped(job, f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit {code}")
    else:
        progress.tell({"epoch": job.epochs}, job.name)


def _say_stopped(job: TrainingJob[Any], why: str) -> None:
    print_line(f"{job.name}: stopped ({why:.160}); to be gone on with after the others")
