"""The learning rate over a run."""

from __future__ import annotations

import math

import torch


def set_rate(
    optimizer: torch.optim.Optimizer, peak: float, done: float, warmup: float = 0.1
) -> None:
    """Up to the peak in a straight line, then down to nothing along a cosine."""
    if done < warmup:
        rate = peak * (0.04 + 0.96 * done / warmup)
    else:
        rate = peak * 0.5 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup)))
    for group in optimizer.param_groups:
        group["lr"] = rate
