"""Timings that Inductor's own autotuning made, gathered into a dataset.

They have the cost of a launch in them (see `timer`), so they never mix with those of a sweep:
their method is `feedback`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping

from torch_diode.types.candidate import Candidate
from torch_diode.types.dataset import Dataset, Provenance
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

METHOD = "feedback"


class CollectionMode(enum.Enum):
    """What to keep of each autotuned problem."""

    TIMINGS = "timings"
    """Every candidate's time."""
    SELECTIONS = "selections"
    """The fastest candidate alone: what Inductor went for."""


class FeedbackTimings:
    """Autotuned problems by hardware; one that is autotuned again replaces what was there."""

    def __init__(
        self, releases: Mapping[str, str], mode: CollectionMode = CollectionMode.TIMINGS
    ) -> None:
        self._releases, self._mode = dict(releases), mode
        self._found: dict[tuple[str, MMShape], dict[Candidate, float]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, hardware: str, problem: MMShape, milliseconds: Mapping[Candidate, float]) -> None:
        """One problem's times; infinity stands for a candidate that could not run."""
        times = {candidate: 1000 * ms for candidate, ms in milliseconds.items()}
        if self._mode is CollectionMode.SELECTIONS and times:
            best = min(times, key=times.__getitem__)
            times = {best: times[best]} if math.isfinite(times[best]) else {}
        if times:
            self._found[hardware, problem] = times

    def dataset(self, provenance: Provenance | None = None) -> Dataset:
        """All of it."""
        return Dataset.from_timings(
            (
                self._timing(hardware, problem, candidate, time_us)
                for (hardware, problem), times in self._found.items()
                for candidate, time_us in times.items()
            ),
            provenance,
        )

    def _timing(
        self, hardware: str, problem: MMShape, candidate: Candidate, time_us: float
    ) -> Timing:
        ran = math.isfinite(time_us) and time_us > 0
        return Timing(
            hardware,
            problem,
            candidate,
            time_us if ran else None,
            status="ok" if ran else "failed",
            method=METHOD,
            torch=self._releases.get("torch", ""),
            triton=self._releases.get("triton", ""),
        )
