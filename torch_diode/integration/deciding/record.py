"""The record of decisions, for `explain`."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from torch_diode.heuristics.questions import Question
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
    plain: Prediction | None = None
    """What plain torch runs, where it is among the candidates."""
    epilogue: str = ""
    """Ops after the matmul that a template fuses, and their cost after ATen."""

    def __str__(self) -> str:
        text = (
            f"{self.problem} on {self.hardware}: {self.winner} by {self.source}, "
            f"{self.kept} of {self.ranked} kept ({self.mode}), {self.microseconds:.0f} us"
        )
        return f"{text}; then {self.epilogue}" if self.epilogue else text


@dataclass(frozen=True)
class Answered:
    """An answer of a user's function to a question of Inductor's."""

    question: Question
    answer: object
    source: str
    """The function that answered."""
    microseconds: float
    """Time of the question and the functions, the first time."""
    times: int = 1
    """Number of times this was asked: Inductor repeats itself."""

    def __str__(self) -> str:
        asked = f"{self.question} on {self.question.hardware.name}"
        return f"{asked}: {_brief(self.answer)} by {self.source}, {self.microseconds:.0f} us"


_HEAD: tuple[str, ...] = (
    *("problem", "winner", "us", "torch's us", "runner-up", "us"),
    *("decided by", "kept", "times", "took us"),
)


_ANSWERS_HEAD = ("question", "answer", "torch's own", "decided by", "times", "took us")


class Decisions(list[Decision]):
    """A list of decisions, and the answers to other questions; prints as a table of each, with
    notes under it."""

    notes: tuple[str, ...] = ()
    """What to know about them, such as rows of a table that no problem met."""

    def __init__(
        self, decisions: Iterable[Decision] = (), answers: Iterable[Answered] = ()
    ) -> None:
        super().__init__(decisions)
        self.answers = tuple(answers)

    def __str__(self) -> str:
        tables = []
        if self:
            tables.append(f"{_table(_decision_rows(self))}\n{_saved(self)}".rstrip())
        if self.answers:
            tables.append(_table([_ANSWERS_HEAD, *map(_answer_cells, self.answers)]))
        text = "\n\n".join(tables) or "no decisions recorded"
        return "\n".join([text, *(f"note: {note}" for note in self.notes)])


def _decision_rows(decisions: Sequence[Decision]) -> list[tuple[str, ...]]:
    """Head and cells of a table; decisions that differ only in what they took share a row."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for decision in decisions:
        groups.setdefault(_cells(decision), []).append(decision.microseconds)
    any_epilogue = any(end for *_, end in groups)
    rows = [(*_HEAD, "then") if any_epilogue else _HEAD]
    for (*cells, end), took in groups.items():
        row = (*cells, str(len(took)), f"{median(took):.0f}")
        rows.append((*row, end) if any_epilogue else row)
    return rows


def _saved(decisions: Sequence[Decision]) -> str:
    """Sum of the winners' times and of plain torch's, over decisions that have both."""
    pairs = [
        (decision.winner.predicted_us, decision.plain.predicted_us)
        for decision in decisions
        if decision.plain is not None
    ]
    timed = [(own, plain) for own, plain in pairs if own is not None and plain is not None]
    if not timed:
        return ""
    chosen, plain = (sum(column) for column in zip(*timed, strict=True))
    matmuls = "1 matmul" if len(timed) == 1 else f"{len(timed)} matmuls"
    return (
        f"{matmuls}, by these times: {chosen:.1f} us, {plain:.1f} with torch's own kernels; "
        f"{plain - chosen:.1f} us saved ({1 - chosen / plain:.0%})"
    )


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _answer_cells(answered: Answered) -> tuple[str, ...]:
    return (
        str(answered.question),
        _brief(answered.answer),
        _brief(answered.question.default),
        answered.source,
        str(answered.times),
        f"{answered.microseconds:.0f}",
    )


def _brief(answer: object) -> str:
    """An answer in a few words; of a list, its length and its first."""
    if isinstance(answer, tuple) and len(answer) > 1:
        return f"{answer[0]} and {len(answer) - 1} more"
    return ", ".join(map(str, answer)) if isinstance(answer, tuple) else str(answer)


def _cells(decision: Decision) -> tuple[str, ...]:
    second = decision.runners_up[0] if decision.runners_up else None
    return (
        str(decision.problem),
        str(decision.winner.candidate),
        _microseconds(decision.winner),
        _microseconds(decision.plain) if decision.plain else "",
        str(second.candidate) if second else "",
        _microseconds(second) if second else "",
        decision.source,
        f"{decision.kept}/{decision.ranked}",
        decision.epilogue,
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

    def explain(self, answers: Iterable[Answered] = ()) -> Decisions:
        """All recorded decisions, as a list that prints as a table, with these answers."""
        return Decisions(self, answers)


class AnswerRecord:
    """The last different answers, oldest first; bounded."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._answers: dict[tuple[Question, object, str], Answered] = {}

    def add(self, answered: Answered) -> None:
        """Record an answer, and log it at INFO; one given before is counted."""
        key = (answered.question, answered.answer, answered.source)
        before = self._answers.get(key)
        if before is None:
            logger.info("%s", answered)
            while len(self._answers) >= self._size:
                del self._answers[next(iter(self._answers))]
        self._answers[key] = replace(before, times=before.times + 1) if before else answered

    def __iter__(self) -> Iterator[Answered]:
        return iter(list(self._answers.values()))
