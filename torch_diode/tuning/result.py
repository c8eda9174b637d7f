"""The outcome of a tuning."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_diode.integration.tuned_tables import TunedFolder
    from torch_diode.tuning.gains import Gain
    from torch_diode.tuning.plan import Task


@dataclass(frozen=True, eq=False)
class TuneResult:
    """The outcome of a tuning."""

    gains: tuple[Gain, ...]
    """The program's problems that are measured, now or before: what saves most first."""
    measured: int
    """Problems timed now."""
    reused: int
    """Problems that were measured before."""
    waiting: tuple[Task, ...]
    """Problems that are not measured: all that are to be, in a dry run."""
    seconds: float
    """Estimated time to measure those."""
    folders: tuple[TunedFolder, ...]
    left_out: Counter[str]
    """Reasons for which problems were not timed, and how many."""
    notes: tuple[str, ...] = ()

    @property
    def own_us(self) -> float:
        """Time of the program's matmuls, each once per occurrence, with torch's own kernels."""
        return sum(gain.use.count * gain.own_us for gain in self.gains)

    @property
    def chosen_us(self) -> float:
        """The same with the kernels chosen now."""
        return sum(gain.use.count * gain.chosen_us for gain in self.gains)
