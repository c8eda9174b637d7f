"""A lesson: a trained network taught times that were not measured, a few problems at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from torch_diode.model.features.table import FeatureTable
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.training.batches import ProblemBatches
from torch_diode.model.training.epoch import EpochOptions, Row, run_epoch
from torch_diode.model.training.trainer import config_parameters


@dataclass(frozen=True)
class DistillationOptions(EpochOptions):
    """How a lesson is taught. Its times have no noise, so differences count that a measurement
    could not tell: `near`, `floor` and `temperature` are sharper than in training."""

    epochs: int = 16
    batch_problems: int = 192
    learning_rate: float = 1.5e-3
    weight_decay: float = 1e-3
    warmup: float = 0.1
    near: float = 0.12
    floor: float = 0.03
    temperature: float = 0.03
    list_weight: float = 0.05


def distill(
    network: TimingNetwork,
    table: FeatureTable,
    options: DistillationOptions,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Train the network for configs on the table, in place; its heads stay as they are."""
    o = options
    network.to(device)
    batches = ProblemBatches(table, device=device)
    parameters = config_parameters(network)
    optimizer = torch.optim.AdamW(
        parameters, o.learning_rate, weight_decay=o.weight_decay, fused=True
    )
    history: list[Row] = []
    for epoch in range(o.epochs):
        history.append(run_epoch(network, batches, optimizer, o, seed, epoch))
        if progress is not None:
            progress(history[-1])
    network.eval()
    return history
