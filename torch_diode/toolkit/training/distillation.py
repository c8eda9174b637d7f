"""Distillation: several wider networks, the teachers, whose agreement the model learns.

Each network fits the noise of its timings differently, so the mean of several is closer to the
truth than any one of them, or than a single measurement. The model that serves a compile has to be
one small network: once trained, it is trained further on very many problems, measured or not. Each
comes with the candidates that the model ranks best, since it is among those that it chooses, and
with the mean prediction of teachers and model as their times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from torch_diode.model.evaluation.scoring import predict_log_ratio
from torch_diode.model.features.names import TEMPLATES
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.features.table import FeatureTable, unmeasured_table
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.training.batches import ProblemBatches
from torch_diode.model.training.epoch import EpochOptions, Row, config_optimizer, run_epoch
from torch_diode.model.training.options import Trained, TrainingOptions
from torch_diode.model.training.split import SplitTables
from torch_diode.model.training.trainer import calibrate, train_configs
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.toolkit.training.parallel import TrainingJob, report_epochs
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_DRAWN_SHARE = 2.5
"""Unmeasured problems per measured one."""
_BEST, _OTHERS = 64, 30
"""Candidates of each problem: the best, and about so many of the rest."""
_FEWEST = 4
_TEACHER: dict[str, Any] = {
    "kind": "deep",
    "shape": {"hidden": 96, "layers": 2, "encoder": 192},
    "epochs": 30,
    "batch_problems": 192,
    "learning_rate": 3e-3,
    "weight_decay": 0.03,
}


@dataclass(frozen=True)
class DistillationOptions(EpochOptions):
    """Options of a distillation. Its times have no noise, so `near`, `floor` and `temperature` are
    sharper than in training."""

    epochs: int = 16
    batch_problems: int = 192
    learning_rate: float = 1.5e-3
    weight_decay: float = 1e-3
    warmup: float = 0.1
    near: float = 0.12
    floor: float = 0.03
    temperature: float = 0.03
    list_weight: float = 0.05


def teacher_jobs(
    parts: SplitTables, options: TrainingOptions, states: Sequence[Path]
) -> list[TrainingJob[TimingNetwork]]:
    """A teacher for each state file, trained from a seed of its own, or from the state there is."""

    def job(number: int, state: Path) -> TrainingJob[TimingNetwork]:
        own = replace(options, **_teacher(options), seed=options.seed + number)
        name = f"Teacher {number} of {len(states)}"
        return TrainingJob(name, own.epochs, lambda tell: train_configs(parts, own, tell, state))

    return [job(number, state) for number, state in enumerate(states, 1)]


def train_teachers(
    jobs: Sequence[TrainingJob[TimingNetwork]], progress: ProgressCallback
) -> list[TimingNetwork]:
    """The networks of the jobs, each trained to the end from its state."""
    return [job.train(report_epochs(progress, job.name, job.epochs)) for job in jobs]


def distill_teachers(
    trained: Trained[TimingNetwork],
    teachers: Sequence[TimingNetwork],
    parts: SplitTables,
    dataset: Dataset,
    hardware: Hardware,
    progress: ProgressCallback,
) -> Trained[TimingNetwork]:
    """The model after distillation."""
    options, network = trained.options, trained.network
    known = _problems(parts.train, dataset)
    problems = [*known, *recombined(known, options.seed)]
    text = f"Distilling {len(problems):,} problems, {len(known):,} of them measured"
    progress(Progress(message=text))
    table = distillation_set(problems, network, teachers, hardware, options)
    batch = min(DistillationOptions.batch_problems, max(options.batch_problems * 3 // 2, 1))
    schedule = DistillationOptions(batch_problems=batch)
    report = report_epochs(progress, "Distillation", schedule.epochs)
    history = distill(network, table, schedule, options.seed, options.device, report)
    batches = ProblemBatches(parts.train, options.far, options.far_share, options.device)
    calibrate(network, parts, batches, options)
    before = len(trained.history)
    more = [{**row, "epoch": before + row["epoch"]} for row in history]
    return replace(trained, history=[*trained.history, *more])


def distill(
    network: TimingNetwork,
    table: FeatureTable,
    options: DistillationOptions,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Train the network of configs on the table, in place; its heads stay unchanged."""
    network.to(device)
    batches = ProblemBatches(table, device=device)
    optimizer = config_optimizer(network, options.learning_rate, options.weight_decay)
    history: list[Row] = []
    for epoch in range(options.epochs):
        history.append(run_epoch(network, batches, optimizer, options, seed, epoch))
        if progress is not None:
            progress(history[-1])
    network.eval()
    return history


def distillation_set(
    problems: Sequence[MMShape],
    network: TimingNetwork,
    teachers: Sequence[TimingNetwork],
    hardware: Hardware,
    options: TrainingOptions,
) -> FeatureTable:
    """Each problem's best configs and some others, with the mean prediction of all networks;
    a problem with hardly any is left out."""
    from torch_diode.model.training.candidate_sampling import sample_candidates

    near = sample_candidates(
        problems, options.kind, network, hardware, TEMPLATES, _BEST, _OTHERS, options.seed
    )
    kept = [(p, some) for p, some in zip(problems, near, strict=True) if len(some) >= _FEWEST]
    table = unmeasured_table([p for p, _ in kept], [some for _, some in kept], hardware)
    times = np.exp(_mean(table, [*teachers, network], options.device))
    return replace(table, time_us=(times * table.roofline[table.group]).astype(np.float32))


def recombined(problems: list[MMShape], seed: int) -> list[MMShape]:
    """New problems of the measured kinds, each with the M of one, the N of another and the K of a
    third, so that sizes keep their distribution and alignment; none exceeds the largest."""
    source = random.Random(seed)
    kinds: dict[tuple[object, ...], list[MMShape]] = {}
    for problem in problems:
        kind = (problem.op, problem.dtype, problem.tf32, problem.layout, problem.bias)
        kinds.setdefault(kind, []).append(problem)
    known = set(problems)
    drawn: dict[MMShape, None] = {}
    for members in kinds.values():
        most = max(p.flops for p in members)
        for _ in range(round(_DRAWN_SHARE * len(members))):
            m, n, k = (source.choice(members) for _ in range(3))
            problem = replace(m, N=n.N, K=k.K)
            if problem not in known and problem.flops <= most:
                drawn[problem] = None
    return list(drawn)


def _teacher(options: TrainingOptions) -> dict[str, Any]:
    """Options of a teacher; with few problems its batches are as small as the model's."""
    size = min(_TEACHER["batch_problems"], max(options.batch_problems * 3 // 2, 1))
    return {**_TEACHER, "batch_problems": size}


def _problems(table: FeatureTable, dataset: Dataset) -> list[MMShape]:
    """The measured problems of a table that have configs."""
    rows = np.where(table.is_config, table.rows, -1)
    _, first = np.unique(table.group[rows >= 0], return_index=True)
    return [dataset.problem(int(row)) for row in rows[rows >= 0][first]]


def _mean(table: FeatureTable, networks: Sequence[TimingNetwork], device: str) -> Floats:
    batches = ProblemBatches(table, device=device)
    total = sum(predict_log_ratio(network.to(device), table, batches) for network in networks)
    return np.asarray(total / len(networks), np.float32)
