"""Delay of the GPU's queue before a batch of samples, so that the CPU stays ahead of it.

If queueing a sample takes the CPU longer than running it takes the GPU, the CPU falls behind a
little with each. The best delay is the sum over the batch: with a shorter one, samples are late and
have to be repeated; a longer one wastes GPU time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_S = 1 / 3000
"""Margin for interruptions of the CPU and for uneven kernels."""
MOST_S = 128 * LEAST_S
_MOST_GROWTH = 4.0
_MEMORY = 100
"""Samples; a batch of this size has the weight of all before it."""


@dataclass(frozen=True)
class QueueDelay:
    """Estimate of how far the CPU falls behind with each sample, in seconds."""

    per_sample_s: float = 0.0

    def seconds(self, count: int, attempt: int = 0) -> float:
        """Sleep before a batch of `count` samples, doubled with each attempt at the same samples so
        that even a very slow launch is in time in the end."""
        return min(LEAST_S * 2.0**attempt + count * self.per_sample_s, MOST_S)

    def after(self, slept_s: float, clean: Sequence[bool], left_s: float) -> QueueDelay:
        """Updated estimate after a batch, weighted by its size."""
        count = len(clean)
        weight = count / (count + _MEMORY)
        change = needed(slept_s, clean, left_s) / count - self.per_sample_s
        return QueueDelay(self.per_sample_s + weight * change)


def needed(slept_s: float, clean: Sequence[bool], left_s: float) -> float:
    """Sleep that would have been just enough for a batch: shorter by the work the GPU had left when
    the CPU was done; if samples were late, longer by the ratio of all samples to those in time."""
    in_time = sum(clean)
    if in_time == len(clean):
        return max(slept_s - left_s, 0.0)
    # Limited, since an interruption at the first sample makes all others late.
    return slept_s * min(len(clean) / max(in_time, 1), _MOST_GROWTH)
