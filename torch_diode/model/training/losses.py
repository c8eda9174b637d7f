"""What a network is trained to make small."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torch_diode.model.training.batches import Batch

_HUBER = 0.1
_MOST_SQUARE = 0.25
"""Of an error of half: a stalled measurement must not pull a model about."""
_TYPICAL_ERROR = 0.05
"""A time as uncertain as this counts half of one that is known: a model's own error is no less."""


def regression_loss(predicted: Tensor, batch: Batch, near: float, floor: float) -> Tensor:
    """The error of log times, weighted towards the top: a config that takes e times `near` longer
    than the best counts a third of it, and none counts less than `floor`; noisy times count less.
    """
    weight = (floor + torch.exp(-batch.log_regret / near)) * _certainty(batch.noise)
    error = nn.functional.smooth_l1_loss(predicted, batch.target, beta=_HUBER, reduction="none")
    return (weight * error).sum() / weight.sum()


def listwise_loss(predicted: Tensor, batch: Batch, temperature: float) -> Tensor:
    """How far the odds a softmax of predicted times gives each config are from those the measured
    times give it (Kullback-Leibler, a problem each).

    Least for the right differences and for no others, so that it sharpens the order near the top
    without bending the times. The temperature is the error of times that one cannot hope to tell
    from noise; where times are noisier than usual it is higher.
    """
    softness = torch.hypot(_noise_near_the_top(batch), batch.noise.new_tensor(temperature))
    softness = softness[batch.group]
    wanted = _log_odds(-batch.log_regret / softness, batch)
    given = _log_odds(-predicted / softness, batch)
    return (torch.exp(wanted) * (wanted - given)).sum() / len(batch)


def vendor_loss(members: Tensor, target: Tensor, noise: Tensor) -> Tensor:
    """Squared error: between two candidates the one of the smaller mean log time is the right
    choice, and the library's errors lean to one side, where a median would not see them."""
    error = torch.square(members - target).clamp(max=_MOST_SQUARE).mean(0)
    weight = _certainty(noise)
    return (weight * error).sum() / weight.sum()


def _certainty(noise: Tensor) -> Tensor:
    return 1 / (1 + torch.square(noise / _TYPICAL_ERROR))


def _noise_near_the_top(batch: Batch) -> Tensor:
    """The mean standard error of each problem's best configs."""
    weight = torch.exp(-batch.log_regret / _TYPICAL_ERROR)
    zeros = weight.new_zeros(len(batch))
    total = zeros.index_add(0, batch.group, weight)
    return zeros.index_add(0, batch.group, weight * batch.noise) / total.clamp(min=1e-20)


def _log_odds(score: Tensor, batch: Batch) -> Tensor:
    top = score.new_full((len(batch),), -torch.inf)
    score = score - top.scatter_reduce(0, batch.group, score.detach(), "amax")[batch.group]
    total = score.new_zeros(len(batch)).index_add(0, batch.group, torch.exp(score))
    return score - torch.log(total)[batch.group]
