"""Training losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from torch_diode.model.training.batches import Batch

_HUBER = 0.1
_MAX_SQUARE = 0.25
"""Cap on squared errors, against outliers such as a stalled measurement."""
_TYPICAL_ERROR = 0.05
"""A time with this standard error has half the weight of an exact one."""


def regression_loss(predicted: Tensor, batch: Batch, near: float, floor: float) -> Tensor:
    """Huber loss of log times, weighted towards the fastest: the weight decays with the log regret
    on the scale `near`, down to `floor`; noisy times weigh less."""
    weight = (floor + torch.exp(-batch.log_regret / near)) * _certainty(batch.noise)
    error = nn.functional.smooth_l1_loss(predicted, batch.target, beta=_HUBER, reduction="none")
    return (weight * error).sum() / weight.sum()


def listwise_loss(predicted: Tensor, batch: Batch, temperature: float) -> Tensor:
    """Kullback-Leibler divergence, per problem, between the softmax of measured and of predicted
    times.

    Minimal for the right differences only, so that it sharpens the order near the top without
    biasing the times. The temperature is the error that cannot be told from noise; it is higher
    where times are noisier.
    """
    softness = torch.hypot(_noise_of_best(batch), batch.noise.new_tensor(temperature))
    softness = softness[batch.group]
    measured = _log_odds(-batch.log_regret / softness, batch)
    modelled = _log_odds(-predicted / softness, batch)
    return (torch.exp(measured) * (measured - modelled)).sum() / len(batch)


def vendor_loss(members: Tensor, target: Tensor, noise: Tensor) -> Tensor:
    """Squared error: of two candidates the one with the smaller mean log time is the right choice,
    and the library's errors are skewed, which a median would ignore."""
    error = torch.square(members - target).clamp(max=_MAX_SQUARE).mean(0)
    weight = _certainty(noise)
    return (weight * error).sum() / weight.sum()


def _certainty(noise: Tensor) -> Tensor:
    return 1 / (1 + torch.square(noise / _TYPICAL_ERROR))


def _noise_of_best(batch: Batch) -> Tensor:
    """Mean standard error of each problem's best configs."""
    weight = torch.exp(-batch.log_regret / _TYPICAL_ERROR)
    zeros = weight.new_zeros(len(batch))
    total = zeros.index_add(0, batch.group, weight)
    return zeros.index_add(0, batch.group, weight * batch.noise) / total.clamp(min=1e-20)


def _log_odds(score: Tensor, batch: Batch) -> Tensor:
    top = score.new_full((len(batch),), -torch.inf)
    score = score - top.scatter_reduce(0, batch.group, score.detach(), "amax")[batch.group]
    total = score.new_zeros(len(batch)).index_add(0, batch.group, torch.exp(score))
    return score - torch.log(total)[batch.group]
