"""Training several networks at once, one process each.

A network this small keeps one core busy and a GPU hardly at all. A process keeps its progress in a
state file, as a run that may be killed does, and the caller continues from that file. A process
that ends early therefore costs only time, and where processes cannot be forked the caller trains
the networks one after the other.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch

from torch_diode.collection.workers.fork_safety import can_fork
from torch_diode.collection.workers.pool import ProgressMarker, WorkerDied, WorkerPool
from torch_diode.toolkit.progress import Progress, ProgressCallback

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
    report = _JointReport(progress, sum(job.epochs for job in jobs))
    started = 0
    with WorkerPool[TrainingJob[Any], None](
        [functools.partial(_trainer, job) for job in jobs], on_progress=report.epoch
    ) as pool:
        while started < len(jobs) or pool.unfinished_jobs():
            while started < len(jobs) and len(pool.unfinished_jobs()) < processes:
                pool.submit(started, [jobs[started]], [None])
                started += 1
            for event in pool.read(None):
                assert event.job is not None
                if isinstance(event, WorkerDied):
                    report.stopped(event.job, event.reason)
                else:
                    report.epoch(event.job, {"epoch": event.job.epochs})
                    pool.stop(event.worker)


def _trainer(job: TrainingJob[Any], mark: ProgressMarker) -> Callable[[None], None]:
    # Threads of OpenMP do not survive a fork.
    torch.set_num_threads(1)

    def train(_: None) -> None:
        job.train(mark)

    return train


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
