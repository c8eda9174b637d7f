"""What a candidate took, and what a heuristic thinks it will take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch_diode.types import checks
from torch_diode.types.candidate import Candidate
from torch_diode.types.problem import MMShape

STATUSES = ("ok", "out_of_resources", "failed", "wrong")
SLUG = r"[a-z0-9]+([._+-][a-z0-9]+)*"


def positive_time(owner: str, field: str, value: Any) -> float:
    """`value` as a float of microseconds: finite and above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        checks.refuse(owner, field, value, "microseconds as a number")
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        checks.refuse(owner, field, value, "microseconds above zero and finite")
    return number


@dataclass(frozen=True)
class Timing:
    """What a candidate took on a problem, on a hardware, and how that was measured.

    `status` is `ok`, or why there is no time: `out_of_resources` (does not fit the chip),
    `failed` (did not compile or launch), `wrong` (ran, and gave a wrong result).
    `spread` is half the interquartile range over the median; `repeats` how often it ran.
    """

    hardware: str
    problem: MMShape
    candidate: Candidate
    time_us: float | None
    status: str = "ok"
    spread: float | None = None
    repeats: int = 1
    method: str = "sweep"
    torch: str = ""
    triton: str = ""

    def __post_init__(self) -> None:
        checks.name("Timing", "hardware", self.hardware, SLUG, "a name such as nvidia-h200")
        checks.one_of("Timing", "status", self.status, STATUSES)
        checks.name("Timing", "method", self.method, SLUG, "a name such as sweep or feedback")
        checks.whole_number("Timing", "repeats", self.repeats, low=0, high=2**15 - 1)
        if self.status == "ok":
            positive_time("Timing", "time_us", self.time_us)
        elif self.time_us is not None:
            checks.refuse("Timing", "time_us", self.time_us, f"None when {self.status}")
        if self.spread is not None and not 0 <= self.spread < math.inf:
            checks.refuse("Timing", "spread", self.spread, "a fraction of the time, 0 or more")


@dataclass(frozen=True)
class Prediction:
    """A candidate and the microseconds a heuristic expects it to take.

    `sigma` is the heuristic's own estimate of its error, as a fraction of the time; None where it
    has none. `source` names the heuristic that spoke.
    """

    candidate: Candidate
    predicted_us: float
    sigma: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        positive_time("Prediction", "predicted_us", self.predicted_us)
        if self.sigma is not None and not 0 <= self.sigma < math.inf:
            checks.refuse("Prediction", "sigma", self.sigma, "a fraction of the time, 0 or more")
