"""One epoch of the network of configs: all problems once, losses of times and of order together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from torch_diode.model.training.losses import listwise_loss, regression_loss
from torch_diode.model.training.time_limit import NO_LIMIT, TimeLimit

if TYPE_CHECKING:
    from torch_diode.model.networks.timing_models import TimingNetwork
    from torch_diode.model.training.batches import ProblemBatches

Row = dict[str, float]


@dataclass(frozen=True)
class EpochOptions:
    """Options of an epoch; the losses describe the last four."""

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
    limit: TimeLimit = NO_LIMIT,
) -> Row:
    """Train in place, to the end of the epoch or of the time; return its row of the history."""
    o = options
    steps = math.ceil(len(batches) / o.batch_problems)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    network.train()
    total = torch.zeros(2, device=parameters[0].device)
    rng = np.random.default_rng((seed, epoch))
    taken = 1
    for number, batch in enumerate(batches.draw(o.batch_problems, rng)):
        done = max((epoch + number / steps) / o.epochs, limit.spent)
        set_rate(optimizer, o.learning_rate, done, o.warmup)
        predicted = network(batch.problem, batch.config, batch.group)
        error = regression_loss(predicted, batch, o.near, o.floor)
        order = listwise_loss(predicted, batch, o.temperature)
        optimizer.zero_grad()
        (error + o.list_weight * order).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        # Read at the end only: reading waits for the GPU.
        total += torch.stack([error.detach(), order.detach()])
        taken = number + 1
        if limit.is_over:
            break
    loss, list_loss = (total / taken).tolist()
    return {"epoch": epoch + 1, "loss": loss, "list_loss": list_loss}


def config_optimizer(
    network: TimingNetwork, rate: float, weight_decay: float
) -> torch.optim.Optimizer:
    """Build the optimizer of the network of configs, without the heads."""
    heads = (network.aten, network.split, network.uncertainty)
    others = {id(p) for module in heads for p in module.parameters()}
    parameters = [p for p in network.parameters() if id(p) not in others]
    return torch.optim.AdamW(parameters, rate, weight_decay=weight_decay, fused=True)


def set_rate(
    optimizer: torch.optim.Optimizer, peak: float, done: float, warmup: float = 0.1
) -> None:
    """Set the learning rate for the share `done` of a run: linear warmup, then cosine decay."""
    if done < warmup:
        rate = peak * (0.04 + 0.96 * done / warmup)
    else:
        rate = peak * 0.5 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup)))
    for group in optimizer.param_groups:
        group["lr"] = rate
