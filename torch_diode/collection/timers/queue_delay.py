"""How long the GPU sleeps before a batch of samples, so that the CPU keeps ahead of it.

Where the CPU takes longer to queue a sample than the GPU to run it, it falls behind by a little
with each. The best sleep is what that comes to over the batch: after a shorter one samples are late
and have to be taken again, a longer one is GPU time wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_S = 1 / 3000
"""For hiccups of the CPU, and for kernels that follow each other unevenly."""
MOST_S = 128 * LEAST_S
_MOST_GROWTH = 4.0
_MEMORY = 100
"""Samples; a batch of so many counts as much as all before it."""


@dataclass(frozen=True)
class QueueDelay:
    """What is known of the next batch: by how much the CPU falls behind with each sample."""

    a_sample_s: float = 0.0

    def seconds(self, count: int, attempt: int = 0) -> float:
        """The sleep before a batch of so many; longer with each attempt at the same samples, so
        that a launch slower than all before catches up in the end."""
        return min(LEAST_S * 2.0**attempt + count * self.a_sample_s, MOST_S)

    def after(self, slept_s: float, clean: Sequence[bool], left_s: float) -> QueueDelay:
        """What is known after a batch; a small one says little."""
        count = len(clean)
        weight = count / (count + _MEMORY)
        news = needed(slept_s, clean, left_s) / count - self.a_sample_s
        return QueueDelay(self.a_sample_s + weight * news)


def needed(slept_s: float, clean: Sequence[bool], left_s: float) -> float:
    """The sleep that would just have done for a batch: less than it had by what the GPU had left
    when the CPU was done; where samples were late, as much for each as those in time had of it."""
    in_time = sum(clean)
    if in_time == len(clean):
        return max(slept_s - left_s, 0.0)
    # The share of one batch may be chance: a hiccup at its first sample makes all others late.
    return slept_s * min(len(clean) / max(in_time, 1), _MOST_GROWTH)
