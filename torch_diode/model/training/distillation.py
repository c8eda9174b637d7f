"""Distillation: training of a network on predicted instead of measured times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_diode.model.training.batches import ProblemBatches
from torch_diode.model.training.epoch import EpochOptions, Row, config_optimizer, run_epoch

if TYPE_CHECKING:
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.networks.timing_models import TimingNetwork


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
