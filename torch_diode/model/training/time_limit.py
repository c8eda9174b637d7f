"""Time limit of a training: the learning rate falls to zero as the time runs out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TimeLimit:
    """Seconds a training may take, counted from when this was made; None for no limit."""

    seconds: float | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        """Share of the time that is over, from 0 to 1; 0 without a limit."""
        if self.seconds is None:
            return 0.0
        return min((time.monotonic() - self.started) / self.seconds, 1.0)

    @property
    def is_over(self) -> bool:
        """True once the time is spent."""
        return self.spent >= 1

    def part(self, share: float) -> TimeLimit:
        """A limit of its own, from now on, of this share of the whole time."""
        return TimeLimit(None if self.seconds is None else share * self.seconds)


NO_LIMIT = TimeLimit()
