"""Measured and predicted times of a candidate."""

from __future__ import annotations

from dataclasses import dataclass

from torch_diode.types import validation
from torch_diode.types.candidate import STATUSES, Candidate
from torch_diode.types.problem import MMShape
from torch_diode.types.validation import SLUG, VERSION

MOST_THREADS = 4096
DUPLICATES = ("refuse", "first", "last")
"""Ways to merge a timing that occurs twice."""


@dataclass(frozen=True)
class Timing:
    """The time of a candidate on a problem and a hardware, and how it was measured.

    `status` is `ok`, or the reason for a missing time: `out_of_resources` (does not fit the chip),
    `failed` (did not compile or launch), `wrong` (gave a wrong result).
    `spread` is half the interquartile range over the median; `repeats` the number of runs;
    `threads` those of a CPU, 0 on a GPU.
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
    threads: int = 0

    def __post_init__(self) -> None:
        put = object.__setattr__
        validation.name("Timing", "hardware", self.hardware, SLUG, "a name such as nvidia-h200")
        validation.instance("Timing", "problem", self.problem, MMShape)
        validation.instance("Timing", "candidate", self.candidate, Candidate)
        validation.one_of("Timing", "status", self.status, STATUSES)
        validation.name("Timing", "method", self.method, SLUG, "a name such as sweep or feedback")
        for name in ("torch", "triton"):
            expected = "a release such as 2.13.0, or nothing"
            validation.name("Timing", name, getattr(self, name), VERSION, expected)
        repeats = validation.whole_number("Timing", "repeats", self.repeats, low=0, high=2**15 - 1)
        put(self, "repeats", repeats)
        threads = validation.whole_number(
            "Timing", "threads", self.threads, low=0, high=MOST_THREADS
        )
        put(self, "threads", threads)
        if self.status == "ok":
            put(self, "time_us", validation.positive_time("Timing", "time_us", self.time_us))
        elif self.time_us is not None:
            validation.refuse("Timing", "time_us", self.time_us, f"None when {self.status}")
        if self.spread is not None:
            put(self, "spread", validation.fraction("Timing", "spread", self.spread))


@dataclass(frozen=True)
class Prediction:
    """A candidate and its predicted time, None where the heuristic predicts none.

    `sigma` is the heuristic's estimate of its own error as a fraction of the time, None where it
    has none. `source` is the heuristic's name.
    """

    candidate: Candidate
    predicted_us: float | None
    sigma: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        validation.instance("Prediction", "candidate", self.candidate, Candidate)
        if self.predicted_us is not None:
            validation.positive_time("Prediction", "predicted_us", self.predicted_us)
        if self.sigma is not None:
            validation.fraction("Prediction", "sigma", self.sigma)

    def __str__(self) -> str:
        time = "" if self.predicted_us is None else f" ({self.predicted_us:.1f} us)"
        return f"{self.candidate}{time}"
