"""Timings of Inductor's own autotuning as a dataset.

Inductor's times include launch cost (see `timers.cuda`), so their method is `feedback` to keep them
apart from a sweep's; `feedback-clean` if the clean timer replaced Inductor's.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping

from torch_diode.collection.timers.timer import Measurement
from torch_diode.types.candidate import Candidate
from torch_diode.types.dataset import Dataset, Provenance
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

METHOD = "feedback"
CLEAN_METHOD = "feedback-clean"


class CollectionMode(enum.Enum):
    """Source of the problems that a collector compiles."""

    RANDOM = "random"
    """Log-uniform sizes."""
    LOG_NORMAL = "log_normal"
    """Sizes by the law of real workloads."""
    OPERATION_SHAPE_SET = "operation_shape_set"
    """Those of a shape set."""


class FeedbackTimings:
    """Timings of autotuned problems by hardware; autotuning one again replaces its timings."""

    def __init__(self, releases: Mapping[str, str]) -> None:
        self._releases = dict(releases)
        self._timings: dict[tuple[str, int, MMShape], list[Timing]] = {}

    def __len__(self) -> int:
        return len(self._timings)

    def add(
        self,
        hardware: str,
        problem: MMShape,
        milliseconds: Mapping[Candidate, float],
        measured: Mapping[Candidate, Measurement] | None = None,
        threads: int = 0,
    ) -> None:
        """Add the times of one problem; infinity stands for a candidate that could not run.

        `measured` are the clean timer's results; unless it is empty, a candidate that is not in it
        could not run.
        """
        timings = [
            self._timing(hardware, problem, candidate, ms, measured, threads)
            for candidate, ms in milliseconds.items()
        ]
        if timings:
            self._timings[hardware, threads, problem] = timings

    def dataset(self, provenance: Provenance | None = None) -> Dataset:
        """All timings."""
        return Dataset.from_timings(
            (timing for timings in self._timings.values() for timing in timings), provenance
        )

    def _timing(
        self,
        hardware: str,
        problem: MMShape,
        candidate: Candidate,
        milliseconds: float,
        measured: Mapping[Candidate, Measurement] | None,
        threads: int,
    ) -> Timing:
        clean = measured.get(candidate) if measured else None
        time_us, spread, repeats = 1000 * milliseconds, None, 1
        if clean is not None:
            time_us, spread, repeats = clean.time_us, clean.spread, clean.repeats
        elif measured:
            time_us, repeats = math.inf, 0
        ran = math.isfinite(time_us) and time_us > 0
        return Timing(
            hardware,
            problem,
            candidate,
            time_us if ran else None,
            status="ok" if ran else "failed",
            spread=spread,
            repeats=repeats,
            method=CLEAN_METHOD if measured else METHOD,
            torch=self._releases.get("torch", ""),
            triton=self._releases.get("triton", ""),
            threads=threads,
        )
