"""Training several networks at once, one process each.

A network this small keeps one core busy and a GPU hardly at all. A process keeps its progress in a
state file, as a run that may be killed does, and the caller continues from that file. A process
that ends early therefore costs only time, and where processes cannot be forked the caller trains
the networks one after the other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

import torch

from torch_diode.collection.workers.fork_safety import can_fork
from torch_diode.collection.workers.parent_death import die_with_parent
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.types.errors import DiodeError

EpochCallback = Callable[[Mapping[str, float]], None]
"""Called with each row of a training history."""
Result = TypeVar("Result")

_SHOWN = ("loss", "regret@1", "regret@3", "regret@5")


@dataclass(frozen=True)
class TrainingJob(Generic[Result]):
    """A network to train, its name, and its number of epochs."""

    name: str
    epochs: int
    train: Callable[[EpochCallback], Result]


def report_epochs(progress: ProgressCallback, stage: str, epochs: int) -> EpochCallback:
    """Callback for a trainer that reports every epoch as progress of a stage."""

    def report(row: Mapping[str, float]) -> None:
        if "head" in row:
            head, heads = int(row["head"]), int(row["heads"])
            progress(Progress(f"{stage}, ATen", head, heads, "epochs"))
        else:
            values = {name: row[name] for name in _SHOWN if name in row}
            progress(Progress(stage, int(row["epoch"]), epochs, "epochs", values))

    return report


def train_in_parallel(jobs: Sequence[TrainingJob[Any]], progress: ProgressCallback) -> None:
    """Train all, as many at a time as there are cores, the first ones first. A `DiodeError` of one
    ends all of them and is raised."""
    processes = min(len(jobs), os.cpu_count() or 1)
    if processes < 2 or not can_fork():
        progress(Progress(message=f"{len(jobs)} networks, one after the other"))
        return
    progress(Progress(message=f"{len(jobs)} networks, {processes} side by side"))
    waiting = list(jobs)
    running: dict[Connection, tuple[TrainingJob[Any], BaseProcess]] = {}
    report = _JointReport(progress, sum(job.epochs for job in jobs))
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                job = waiting.pop(0)
                connection, process = _start(job)
                running[connection] = job, process
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                if not _receive(ready, running[ready][0], report):
                    _end(*running.pop(ready), report)
    finally:
        for _, process in running.values():
            process.kill()
        for _, process in running.values():
            process.join()


@dataclass
class _JointReport:
    """Reports the epochs of all networks together."""

    progress: ProgressCallback
    epochs: int
    done: dict[str, int] = field(default_factory=dict)

    def epoch(self, job: TrainingJob[Any], row: Mapping[str, float]) -> None:
        self.done[job.name] = int(row.get("epoch", self.done.get(job.name, 0)))
        values = {f"{job.name} regret@1": row["regret@1"]} if "regret@1" in row else {}
        self.progress(Progress("Training", sum(self.done.values()), self.epochs, "epochs", values))

    def stopped(self, job: TrainingJob[Any], why: str) -> None:
        text = f"{job.name}: stopped ({why:.160}); continued after the others"
        self.progress(Progress(message=text))


def _start(job: TrainingJob[Any]) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    # A daemon: Python ends it should this process fail to.
    process = context.Process(target=_run_job, args=(job, theirs, os.getpid()), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _run_job(job: TrainingJob[Any], connection: Connection, parent: int) -> None:
    die_with_parent(parent)
    # Ctrl-C reaches the whole process group; the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Threads of OpenMP do not survive a fork.
    torch.set_num_threads(1)
    try:
        job.train(connection.send)
    except DiodeError as fault:
        connection.send(fault)
    except RuntimeError as fault:
        # Such as too little memory on the GPU.
        connection.send((str(fault).splitlines() or [type(fault).__name__])[0])


def _receive(connection: Connection, job: TrainingJob[Any], report: _JointReport) -> bool:
    """Handle one message of a process; False where there will be no more."""
    try:
        message = connection.recv()
    except (EOFError, ConnectionResetError):
        connection.close()
        return False
    if isinstance(message, DiodeError):
        raise message
    if isinstance(message, str):
        report.stopped(job, message)
    else:
        report.epoch(job, message)
    return True


def _end(job: TrainingJob[Any], process: BaseProcess, report: _JointReport) -> None:
    process.join()
    code = process.exitcode or 0
    if code:
        killed = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
        report.stopped(job, killed)
    else:
        report.epoch(job, {"epoch": job.epochs})
