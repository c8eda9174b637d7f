"""Timings that Inductor's own autotuning made, gathered into a dataset.

Inductor's times have the cost of a launch in them (see `timer`), so they never mix with those of a
sweep: their method is `feedback`. Where the clean timer was in place of Inductor's, the method is
`feedback-clean`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch_diode.collection.timers.cuda import Measurement
from torch_diode.types.candidate import Candidate
from torch_diode.types.dataset import Dataset, Provenance
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

METHOD = "feedback"
CLEAN_METHOD = "feedback-clean"


class CollectionMode(enum.Enum):
    """What to keep of each autotuned problem."""

    TIMINGS = "timings"
    """Every candidate's time."""
    SELECTIONS = "selections"
    """The fastest candidate alone: what Inductor went for."""


@dataclass(frozen=True)
class _Heard:
    """What a candidate took, and whether the clean timer says so."""

    time_us: float
    method: str = METHOD
    spread: float | None = None
    repeats: int = 1


class FeedbackTimings:
    """Autotuned problems by hardware; one that is autotuned again replaces what was there."""

    def __init__(
        self, releases: Mapping[str, str], mode: CollectionMode = CollectionMode.TIMINGS
    ) -> None:
        self._releases, self._mode = dict(releases), mode
        self._found: dict[tuple[str, MMShape], dict[Candidate, _Heard]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(
        self,
        hardware: str,
        problem: MMShape,
        milliseconds: Mapping[Candidate, float],
        measured: Mapping[Candidate, Measurement] | None = None,
    ) -> None:
        """One problem's times; infinity stands for a candidate that could not run.

        `measured` has what the clean timer found; where that is anything, what is not in it could
        not run.
        """
        if measured:
            times = {candidate: _clean(measured.get(candidate)) for candidate in milliseconds}
        else:
            times = {candidate: _Heard(1000 * ms) for candidate, ms in milliseconds.items()}
        if self._mode is CollectionMode.SELECTIONS and times:
            best = min(times, key=lambda candidate: times[candidate].time_us)
            times = {best: times[best]} if math.isfinite(times[best].time_us) else {}
        if times:
            self._found[hardware, problem] = times

    def dataset(self, provenance: Provenance | None = None) -> Dataset:
        """All of it."""
        return Dataset.from_timings(
            (
                self._timing(hardware, problem, candidate, heard)
                for (hardware, problem), times in self._found.items()
                for candidate, heard in times.items()
            ),
            provenance,
        )

    def _timing(
        self, hardware: str, problem: MMShape, candidate: Candidate, heard: _Heard
    ) -> Timing:
        ran = math.isfinite(heard.time_us) and heard.time_us > 0
        return Timing(
            hardware,
            problem,
            candidate,
            heard.time_us if ran else None,
            status="ok" if ran else "failed",
            spread=heard.spread,
            repeats=heard.repeats,
            method=heard.method,
            torch=self._releases.get("torch", ""),
            triton=self._releases.get("triton", ""),
        )


def _clean(measured: Measurement | None) -> _Heard:
    if measured is None:
        return _Heard(math.inf, CLEAN_METHOD, repeats=0)
    return _Heard(measured.time_us, CLEAN_METHOD, measured.spread, measured.repeats)
