"""Training of a CPU's network: all labels of all problems together, in a minute on two cores.

Not every candidate is timed on every problem, so losses are masked. Two of them work together: the
error of log times, and the regret expected when the predictions choose, over all candidates and
over random parts of them, since a compile offers sometimes more and sometimes fewer. Each member
leaves out a part of the problems of its own, for a spread that means something.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_diode.model.evaluation.scoring import columns_of, predict_log_ratio, regret_scores
from torch_diode.model.networks.library_model import LibraryTimingModel
from torch_diode.model.training.batches import log_regrets
from torch_diode.model.training.epoch import Row, set_rate
from torch_diode.model.training.options import Trained
from torch_diode.model.training.time_limit import NO_LIMIT, TimeLimit
from torch_diode.types.errors import EmptySelectionError

if TYPE_CHECKING:
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.training.options import TrainingOptions
    from torch_diode.model.training.split import SplitTables

LIBRARY_DEFAULTS: dict[str, Any] = {
    "epochs": 80,
    "batch_problems": 256,
    "learning_rate": 4e-3,
    "weight_decay": 0.2,
    "patience": 80,
    "evaluate_every": 5,
    "temperature": 0.05,
    "list_weight": 0.5,
}
_HUBER = 0.05
_NEAR, _FLOOR = 0.3, 0.2
"""Log regret on which a time's weight decays, and what is left of it."""
_MOST_REGRET = 1.0
_TYPICAL_ERROR, _MOST_NOISE = 0.05, 0.15
_DROPOUT = 0.05
_LEFT_OUT = 0.2
"""Share of the problems that each member leaves out."""
_LEAST_SHARE = 0.005
"""Share of the problems that a candidate is timed on, for an output of its own."""
_OFFERED = 0.6
"""Chance of a candidate to be in a random part of them."""
_MAX_ERROR = 0.5
_SIGMA_EPOCHS = 300
_SIGMA_RATE = 0.03
_SIGMA_DECAY = 3e-3


@dataclass(frozen=True, eq=False)
class LabelArrays:
    """Problems of a table by labels; what was not timed has a mask of 0."""

    problem: Tensor
    target: Tensor
    mask: Tensor
    log_regret: Tensor
    noise: Tensor

    @classmethod
    def of(cls, table: FeatureTable, labels: tuple[str, ...]) -> LabelArrays:
        """Spread the rows of a table that have one of these labels."""
        numbers, place = np.unique(table.group, return_inverse=True)
        column = columns_of(labels, table)
        known = column >= 0
        at = place.reshape(-1)[known], column[known]

        def spread(values: Any) -> Tensor:
            dense = np.zeros((len(numbers), len(labels)), np.float32)
            dense[at] = values[known]
            return torch.from_numpy(dense)

        return cls(
            torch.from_numpy(table.problem[numbers]),
            spread(table.target),
            spread(known),
            spread(log_regrets(table)),
            spread(np.minimum(table.noise, _MOST_NOISE)),
        )

    def __len__(self) -> int:
        return len(self.problem)

    def take(self, rows: Tensor) -> LabelArrays:
        """Select problems."""
        return LabelArrays(*(values[rows] for values in vars(self).values()))


def train_library(
    parts: SplitTables,
    options: TrainingOptions,
    progress: Callable[[Row], None] | None = None,
    limit: TimeLimit = NO_LIMIT,
) -> Trained[LibraryTimingModel]:
    """Train a `library` network, to the last epoch or as long as the limit allows, keep its epoch
    of the least validation regret, and fit its uncertainty on the validation problems."""
    torch.manual_seed(options.seed)
    table = parts.train
    labels = _often_timed(table)
    network = LibraryTimingModel(len(labels), **options.shape)
    network.labels = labels
    data = LabelArrays.of(table, labels)
    _initialise(network, data)
    optimizer = torch.optim.AdamW(
        _groups(network, options.weight_decay), options.learning_rate, fused=True
    )
    generator = torch.Generator().manual_seed(options.seed)
    kept = torch.rand(len(network.weights[0]), len(data), generator=generator) >= _LEFT_OUT
    history: list[Row] = []
    best, best_state, since_best = math.inf, dict(network.state_dict()), 0
    for epoch in range(options.epochs):
        row = _epoch(network, data, kept.float(), optimizer, options, epoch, generator, limit)
        is_last = epoch + 1 == options.epochs or limit.is_over
        if (epoch + 1) % options.evaluate_every == 0 or is_last:
            row |= _evaluate(network, parts.validation)
            since_best += options.evaluate_every
            if row["regret@1"] < best:
                since_best = 0
            if row["regret@1"] <= best:
                best = row["regret@1"]
                best_state = {n: v.detach().clone() for n, v in network.state_dict().items()}
        history.append(row)
        if progress is not None:
            progress(row)
        if since_best >= options.patience or is_last:
            break
    network.load_state_dict(best_state)
    fit_uncertainty(network.eval(), parts.validation)
    return Trained(network, history, options)


def _often_timed(table: FeatureTable) -> tuple[str, ...]:
    """Labels with enough timings to learn from."""
    count = np.bincount(table.label, minlength=len(table.labels))
    least = max(_LEAST_SHARE * len(np.unique(table.group)), 1)
    return tuple(label for label, n in zip(table.labels, count, strict=True) if n >= least)


def _initialise(network: LibraryTimingModel, data: LabelArrays) -> None:
    network.problem_norm.fit(data.problem)
    count = data.mask.sum(0).clamp(min=1)
    with torch.no_grad():
        network.biases[-1].copy_(((data.target * data.mask).sum(0) / count).expand(1, -1))
        network.weights[-1].mul_(0.3)


def _groups(network: LibraryTimingModel, decay: float) -> list[dict[str, Any]]:
    weights, biases = list(network.weights), list(network.biases)
    return [{"params": weights, "weight_decay": decay}, {"params": biases, "weight_decay": 0.0}]


def _epoch(
    network: LibraryTimingModel,
    data: LabelArrays,
    kept: Tensor,
    optimizer: torch.optim.Optimizer,
    options: TrainingOptions,
    epoch: int,
    generator: torch.Generator,
    limit: TimeLimit,
) -> Row:
    network.train()
    pieces = torch.randperm(len(data), generator=generator).split(options.batch_problems)
    total = torch.zeros(2)
    for number, piece in enumerate(pieces):
        done = max((epoch + number / len(pieces)) / options.epochs, limit.spent)
        set_rate(optimizer, options.learning_rate, done, options.warmup)
        batch, weight = data.take(piece), kept[:, piece, None]
        predicted = network(batch.problem, _DROPOUT)
        error = _regression(predicted, batch, weight)
        offered = torch.rand(batch.mask.shape, generator=generator) < _OFFERED
        choice = _choice(predicted, batch, batch.mask, weight, options.temperature)
        choice = choice + _choice(
            predicted, batch, batch.mask * offered, weight, options.temperature
        )
        optimizer.zero_grad()
        (error + options.list_weight * choice).backward()
        nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], 1.0)
        optimizer.step()
        total += torch.stack([error.detach(), choice.detach()])
    loss, list_loss = (total / len(pieces)).tolist()
    return {"epoch": epoch + 1, "loss": loss, "list_loss": list_loss}


def _regression(predicted: Tensor, batch: LabelArrays, weight: Tensor) -> Tensor:
    certainty = 1 / (1 + torch.square(batch.noise / _TYPICAL_ERROR))
    weight = weight * batch.mask * certainty * (_FLOOR + torch.exp(-batch.log_regret / _NEAR))
    target = batch.target.expand_as(predicted)
    error = nn.functional.smooth_l1_loss(predicted, target, beta=_HUBER, reduction="none")
    return (weight * error).sum() / weight.sum().clamp(min=1e-6)


def _choice(
    predicted: Tensor, batch: LabelArrays, offered: Tensor, weight: Tensor, temperature: float
) -> Tensor:
    """Expected log regret of a choice by the predictions, softened by a temperature."""
    present = offered > 0
    best = batch.log_regret.masked_fill(~present, math.inf).amin(1, keepdim=True)
    regret = (batch.log_regret - best).masked_fill(~present, 0.0).clamp(max=_MOST_REGRET)
    scores = (-predicted / temperature).masked_fill(~present, -1e4)
    expected = (torch.softmax(scores, 2) * regret).sum(2, keepdim=True)
    weight = weight * (present.sum(1, keepdim=True) > 1)
    return (weight * expected).sum() / weight.sum().clamp(min=1e-6)


def _evaluate(network: LibraryTimingModel, table: FeatureTable) -> Row:
    ranked = table.with_a_choice()
    scores = regret_scores(ranked, predict_log_ratio(network, ranked))
    return {f"regret@{score.k}": score.geomean for score in scores}


def fit_uncertainty(network: LibraryTimingModel, table: FeatureTable) -> None:
    """Fit the deviation of each label's error on problems it was not trained on, by likelihood.

    The error that all labels of a problem share changes no choice and is left out; the noise of
    the measurements is known and subtracted.
    """
    data = LabelArrays.of(table, network.labels)
    several = data.mask.sum(1) > 1
    if not several.any():
        raise EmptySelectionError(
            "training: got no problem with a choice to fit the uncertainty on; collect more"
        )
    data = data.take(several)
    with torch.no_grad():
        members = network(data.problem)
        error = (members.mean(0) - data.target) * data.mask
        count = data.mask.sum(1, keepdim=True)
        error = (error - error.sum(1, keepdim=True) / count) * torch.sqrt(count / (count - 1))
        error = (error * data.mask).clamp(-_MAX_ERROR, _MAX_ERROR)
        network.uncertainty.zero_()
        network.uncertainty[0] = math.log(0.1)
    optimizer = torch.optim.Adam([network.uncertainty], _SIGMA_RATE)
    for _ in range(_SIGMA_EPOCHS):
        log_sigma = network.log_sigma(data.problem, members)
        variance = torch.exp(2 * log_sigma) + torch.square(data.noise)
        loss = (data.mask * (torch.log(variance) + torch.square(error) / variance)).sum()
        loss = loss / data.mask.sum() + _SIGMA_DECAY * torch.square(network.uncertainty[1:]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
