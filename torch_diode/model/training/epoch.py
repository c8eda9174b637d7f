"""One epoch of a network for configs: all problems once, times and order together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.training.batches import ProblemBatches
from torch_diode.model.training.losses import listwise_loss, regression_loss
from torch_diode.model.training.schedule import set_rate

Row = dict[str, float]


@dataclass(frozen=True)
class EpochOptions:
    """What an epoch depends on; the losses say what the last four are."""

    epochs: int
    batch_problems: int
    learning_rate: float
    warmup: float
    near: float
    floor: float
    temperature: float
    list_weight: float


def run_epoch(
    network: TimingNetwork,
    batches: ProblemBatches,
    optimizer: torch.optim.Optimizer,
    options: EpochOptions,
    seed: int,
    epoch: int,
) -> Row:
    """Train in place; the row of history for it."""
    o = options
    steps = math.ceil(len(batches) / o.batch_problems)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    network.train()
    total = torch.zeros(2, device=parameters[0].device)
    rng = np.random.default_rng((seed, epoch))
    for number, batch in enumerate(batches.draw(o.batch_problems, rng)):
        set_rate(optimizer, o.learning_rate, (epoch + number / steps) / o.epochs, o.warmup)
        predicted = network(batch.problem, batch.config, batch.group)
        error = regression_loss(predicted, batch, o.near, o.floor)
        order = listwise_loss(predicted, batch, o.temperature)
        optimizer.zero_grad()
        (error + o.list_weight * order).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        # Not asked for before the end: a GPU would have to be waited for at every step.
        total += torch.stack([error.detach(), order.detach()])
    loss, list_loss = (total / steps).tolist()
    return {"epoch": epoch + 1, "loss": loss, "list_loss": list_loss}
