"""The record of decisions, for `explain`."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Prediction

logger = logging.getLogger("torch_diode")

SIZE = 1000
RUNNERS_UP = 3


@dataclass(frozen=True)
class Decision:
    """The outcome of one of Inductor's requests."""

    problem: MMShape
    hardware: str
    winner: Prediction
    runners_up: tuple[Prediction, ...]
    source: str
    """The heuristic that decided."""
    microseconds: float
    """Time from Inductor's arguments to choice objects, without rendering kernels."""
    mode: str
    """`plain` or `max-autotune`, then the mode of the settings where that is not `auto`."""
    kept: int
    """Number of candidates given to Inductor, which benchmarks more than one."""
    ranked: int
    note: str = ""
    epilogue: str = ""
    """Ops after the matmul that a template fuses, and their cost after ATen."""

    def __str__(self) -> str:
        text = (
            f"{self.problem} on {self.hardware}: {self.winner} by {self.source}, "
            f"{self.kept} of {self.ranked} kept ({self.mode}), {self.microseconds:.0f} us"
        )
        return f"{text}; then {self.epilogue}" if self.epilogue else text


_HEAD: tuple[str, ...] = (
    *("problem", "winner", "us", "runner-up", "us"),
    *("decided by", "kept", "took us"),
)


class Decisions(list[Decision]):
    """A list of decisions that prints as a table, with notes under it."""

    notes: tuple[str, ...] = ()
    """What to know about them, such as rows of a table that no problem met."""

    def __str__(self) -> str:
        table = self._table() if self else "no decisions recorded"
        return "\n".join([table, *(f"note: {note}" for note in self.notes)])

    def _table(self) -> str:
        head = _HEAD
        rows = [head, *(_cells(decision) for decision in self)]
        if any(decision.epilogue for decision in self):
            ends = ["then", *(decision.epilogue for decision in self)]
            rows = [(*row, end) for row, end in zip(rows, ends, strict=True)]
            head = rows[0]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(line.rstrip() for line in lines)


def _cells(decision: Decision) -> tuple[str, ...]:
    second = decision.runners_up[0] if decision.runners_up else None
    return (
        str(decision.problem),
        str(decision.winner.candidate),
        _microseconds(decision.winner),
        str(second.candidate) if second else "",
        _microseconds(second) if second else "",
        decision.source,
        f"{decision.kept}/{decision.ranked}",
        f"{decision.microseconds:.0f}",
    )


def _microseconds(entry: Prediction) -> str:
    return "" if entry.predicted_us is None else f"{entry.predicted_us:.1f}"


class Record:
    """The last decisions, oldest first; bounded."""

    def __init__(self, size: int = SIZE) -> None:
        self._decisions: deque[Decision] = deque(maxlen=size)

    def add(self, decision: Decision) -> None:
        """Record a decision, and log it at INFO."""
        self._decisions.append(decision)
        logger.info("%s", decision)

    def __iter__(self) -> Iterator[Decision]:
        return iter(list(self._decisions))

    def __len__(self) -> int:
        return len(self._decisions)

    def explain(self) -> Decisions:
        """All recorded decisions, as a list that prints as a table."""
        return Decisions(self)
