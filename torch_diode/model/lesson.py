"""A lesson: a trained network taught times that were not measured, a few problems at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from torch_diode.model.batches import ProblemBatches
from torch_diode.model.feature_table import FeatureTable
from torch_diode.model.losses import listwise_loss, regression_loss
from torch_diode.model.networks import TimingNetwork
from torch_diode.model.schedule import set_rate
from torch_diode.model.training import Row, config_parameters


@dataclass(frozen=True)
class LessonOptions:
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


def teach(
    network: TimingNetwork,
    table: FeatureTable,
    options: LessonOptions,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Train the network for configs on the table, in place; its heads stay as they are."""
    o = options
    network.to(device).train()
    batches = ProblemBatches(table, device=device)
    parameters = config_parameters(network)
    optimizer = torch.optim.AdamW(parameters, o.learning_rate, weight_decay=o.weight_decay)
    steps = math.ceil(len(batches) / o.batch_problems)
    history: list[Row] = []
    for epoch in range(o.epochs):
        total = np.zeros(2)
        drawn = batches.draw(o.batch_problems, np.random.default_rng((seed, epoch)))
        for number, batch in enumerate(drawn):
            set_rate(optimizer, o.learning_rate, (epoch + number / steps) / o.epochs, o.warmup)
            predicted = network(batch.problem, batch.config, batch.group)
            error = regression_loss(predicted, batch, o.near, o.floor)
            order = listwise_loss(predicted, batch, o.temperature)
            optimizer.zero_grad()
            (error + o.list_weight * order).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            total += (error.item(), order.item())
        history.append(
            {"epoch": epoch + 1, "loss": total[0] / steps, "list_loss": total[1] / steps}
        )
        if progress is not None:
            progress(history[-1])
    network.eval()
    return history
