"""The one `try` around every decision: whatever goes wrong inside, torch's own list is used."""

from __future__ import annotations

import contextlib
import re
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from torch_diode.types.errors import DiodeError

Answer = TypeVar("Answer")
_MOST_CAUSES = 100
_OTHERS = "other causes"


class DiodeWarning(UserWarning):
    """Something kept torch-diode from deciding; torch's own behaviour was used."""


class Abstained(DiodeError):  # noqa: N818
    """Nobody answers this question: no fault, and torch's own list is the answer."""


class NotApplicable(DiodeError):  # noqa: N818
    """The question is none of ours, and nothing to count."""


@dataclass
class Counters:
    """How often what happened, since torch-diode was imported."""

    decisions: int = 0
    abstentions: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Counters:
        """As it stands now."""
        return Counters(self.decisions, Counter(self.abstentions), Counter(self.fallbacks))


class Fallback:
    """Asks for a decision and survives the answer."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def decided(self) -> None:
        """Count a decision."""
        with self._lock:
            self.counters.decisions += 1

    def run(self, step: Callable[[], Answer]) -> Answer | None:
        """What `step` returns; None where it abstained or failed.

        This is the only place that catches everything. A compile must not fail because of a
        heuristic, and which fault it was is for the warning and the counters to say.
        """
        try:
            return step()
        except NotApplicable:
            return None
        except Abstained as reason:
            with self._lock:
                self.counters.abstentions[str(reason)] += 1
            return None
        except Exception as fault:  # noqa: BLE001
            self.report(fault)
            return None

    def report(self, fault: Exception) -> None:
        """Count a fault, and warn the first time its cause is seen."""
        cause = cause_of(fault)
        with self._lock:
            known = self.counters.fallbacks
            if cause not in known and len(known) >= _MOST_CAUSES:
                cause = _OTHERS
            known[cause] += 1
            first = cause not in self._warned
            self._warned.add(cause)
        if first:
            # Where warnings are errors, this one still must not fail the compile.
            with contextlib.suppress(DiodeWarning):
                text = f"torch-diode left a decision to torch: {_sentence(fault)}"
                warnings.warn(text, DiodeWarning, stacklevel=2)


def cause_of(fault: Exception) -> str:
    """A fault's cause in one line, the same for problems that differ in their numbers only."""
    return re.sub(r"\b(0x[0-9a-f]+|\d+(\.\d+)?(x\d+)*)\b", "#", _sentence(fault))[:200]


def _sentence(fault: Exception) -> str:
    """The fault's type and first line, and where it is none of ours the place it comes from."""
    try:
        lines = str(fault).strip().splitlines()
    except Exception:  # noqa: BLE001 - a fault that cannot even say what it is
        lines = []
    text = f"{type(fault).__name__}: {lines[0]:.1000}" if lines else type(fault).__name__
    if lines and isinstance(fault, DiodeError):
        return text
    frames = traceback.extract_tb(fault.__traceback__)
    place = f" in {frames[-1].name} of {Path(frames[-1].filename).name}" if frames else ""
    return f"{text}{place}"
