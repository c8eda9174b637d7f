"""Teachers: several networks whose agreement a smaller one learns from.

Each network follows the noise of its timings in a way of its own, so what several predict on
average is closer to the truth than what any of them does, and than a single measurement near the
top. The model that serves a compile has to be small and is one: it is trained on measured times
drawn towards the teachers' mean, and on problems that were never measured, with the mean for a
time.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from torch_diode.cli.output import say
from torch_diode.cli.progress import TrainingProgress
from torch_diode.cli.rehearsal import drawn_table, joined
from torch_diode.model.batches import ProblemBatches
from torch_diode.model.feature_table import FeatureTable
from torch_diode.model.networks import TimingNetwork
from torch_diode.model.problem_arrays import Floats
from torch_diode.model.scoring import predict_log_ratio
from torch_diode.model.training import Parts, TrainingOptions, train_configs
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_TRUST = 0.6
"""The teachers' share in a measured problem's times; the rest is what was measured."""
_NOISE = 0.01
"""Of their mean."""
_CONFIGS = 200
_DRAWN_SHARE = 0.6
"""Unmeasured problems for each measured one."""
_TEACHER: dict[str, Any] = {
    "kind": "deep",
    "shape": {"hidden": 96, "layers": 2, "encoder": 192},
    "epochs": 30,
    "batch_problems": 192,
    "learning_rate": 3e-3,
    "weight_decay": 0.03,
}


def taught(
    parts: Parts, dataset: Dataset, hardware: Hardware, options: TrainingOptions, count: int
) -> Parts:
    """The parts, with what so many teachers say of the training part's problems and of others."""
    networks = []
    for number in range(count):
        say(f"Teacher {number + 1} of {count}")
        own = replace(options, **_teacher(options), seed=options.seed + 1 + number)
        with TrainingProgress(own.epochs) as progress:
            networks.append(train_configs(parts, own, progress.tell))
    measured = corrected(parts.train, networks, options.device)
    problems = recombined(_problems(parts.train, dataset), options.seed)
    if not problems:
        return replace(parts, train=measured)
    table = drawn_table(problems, hardware, np.random.default_rng(options.seed), _CONFIGS)
    return replace(parts, train=joined(measured, told(table, networks, options.device)))


def corrected(
    table: FeatureTable, networks: list[TimingNetwork], device: str = "cpu"
) -> FeatureTable:
    """Configs' times drawn towards the teachers' mean; ATen's and splits' as they were."""
    target = (1 - _TRUST) * table.target + _TRUST * _mean(table, networks, device)
    times = np.exp(target) * table.roofline[table.group]
    return replace(
        table,
        time_us=np.where(table.is_config, times, table.time_us).astype(np.float32),
        noise=np.where(table.is_config, (1 - _TRUST) * table.noise, table.noise).astype(np.float32),
    )


def told(table: FeatureTable, networks: list[TimingNetwork], device: str = "cpu") -> FeatureTable:
    """The configs of unmeasured problems, with the teachers' mean for a time."""
    times = np.exp(_mean(table, networks, device)) * table.roofline[table.group]
    table = replace(
        table,
        time_us=times.astype(np.float32),
        noise=np.full(len(times), _NOISE, np.float32),
    )
    names = ("group", "rows", "config", "is_aten", "time_us", "noise", "split")
    return replace(table, **{name: getattr(table, name)[table.is_config] for name in names})


def recombined(problems: list[MMShape], seed: int) -> list[MMShape]:
    """New problems of the kinds that were measured: each has the M of one, the N of another and
    the K of a third, so sizes keep their law and their alignment; none is larger than the largest.
    """
    source = random.Random(seed)
    kinds: dict[tuple[object, ...], list[MMShape]] = {}
    for problem in problems:
        kind = (problem.op, problem.dtype, problem.tf32, problem.layout, problem.bias)
        kinds.setdefault(kind, []).append(problem)
    known = set(problems)
    found: dict[MMShape, None] = {}
    for members in kinds.values():
        most = max(p.flops for p in members)
        for _ in range(round(_DRAWN_SHARE * len(members))):
            m, n, k = (source.choice(members) for _ in range(3))
            problem = replace(m, N=n.N, K=k.K)
            if problem not in known and problem.flops <= most:
                found[problem] = None
    return list(found)


def _teacher(options: TrainingOptions) -> dict[str, Any]:
    """A teacher's options; with few problems its batches are as small as the model's."""
    size = min(_TEACHER["batch_problems"], max(options.batch_problems * 3 // 2, 1))
    return {**_TEACHER, "batch_problems": size}


def _problems(table: FeatureTable, dataset: Dataset) -> list[MMShape]:
    """Those of a table that have configs and stand in the dataset."""
    rows = np.where(table.is_config, table.rows, -1)
    _, first = np.unique(table.group[rows >= 0], return_index=True)
    return [dataset.problem(int(row)) for row in rows[rows >= 0][first]]


def _mean(table: FeatureTable, networks: list[TimingNetwork], device: str) -> Floats:
    batches = ProblemBatches(table, device=device)
    total = sum(predict_log_ratio(network.to(device), table, batches) for network in networks)
    return np.asarray(total / len(networks), np.float32)
