"""Fitting of the prefilter, the second output of a `deep` network, after its first layer.

It is fitted to the network's own final predictions; no measurements are needed, and nothing else
in the network changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from torch_diode.model.training.epoch import set_rate

if TYPE_CHECKING:
    from torch_diode.model.networks.timing_models import DeepMatmulTimingModel
    from torch_diode.model.training.batches import ProblemBatches

_RATE = 3e-3
_BATCH = 32
_EPOCHS, _LEAST_STEPS = 2, 150
_NEAR, _FLOOR = 0.3, 0.02
"""Scale on which a candidate's weight decays with its log regret, and its minimum."""


def fit_prefilter(network: DeepMatmulTimingModel, batches: ProblemBatches, seed: int = 0) -> None:
    """Fit the prefilter to the network's predictions for these problems, in place."""
    network.eval()
    optimizer = torch.optim.AdamW(network.prefilter_out.parameters(), _RATE)
    each = math.ceil(len(batches) / _BATCH)
    epochs = max(_EPOCHS, math.ceil(_LEAST_STEPS / each))
    done = 0
    for epoch in range(epochs):
        for batch in batches.draw(_BATCH, np.random.default_rng((seed, epoch))):
            set_rate(optimizer, _RATE, done / (epochs * each), 0.0)
            predicted, output = network.with_prefilter(batch.problem, batch.config, batch.group)
            best = predicted.new_full((len(batch),), math.inf)
            best = best.scatter_reduce(0, batch.group, predicted, "amin")
            weight = torch.exp((best[batch.group] - predicted) / _NEAR) + _FLOOR
            loss = (weight * torch.square(output - predicted)).sum() / weight.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
