"""The live selection benchmark's run: what is handed to its processes, part by part, and what is
kept of their answers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from _selection import DEFAULT, Posed, Row
from _selection_bench import Clean, Cold, Tune
from _selection_compiling import Choices, Compile, Pose

from torch_diode.collection.workers.pool import JobResult, Work, WorkerDied, WorkerError, WorkerPool
from torch_diode.types.candidate import ATEN, Candidate
from workflows.measuring.jobs import Failed
from workflows.measuring.pipeline import SAVE_EVERY_S, Pipeline

OVERRUN_S = 30.0
"""A job begun in time may take so much longer than its part's share."""
FEW = 8


@dataclass
class Run:
    """The problems and their rows; `end` is when all has to be over (`time.monotonic`)."""

    problems: Sequence[Posed]
    rows: dict[str, Row]
    store: Callable[[], None]
    end: float
    faults: Counter[str] = field(default_factory=Counter)
    _saved: float = 0.0

    def row(self, number: int) -> Row:
        """What is known of a problem."""
        posed = self.problems[number]
        start = {"problem": posed.problem.key, "set": posed.origin, "swept": bool(posed.swept)}
        return self.rows.setdefault(posed.problem.key, start)

    def clean(self, benches: WorkerPool[Any, Any], works: Sequence[Work], deadline: float) -> None:
        """Compile on all cores, and time what is ready."""
        numbers = [n for n in range(len(self.problems)) if "times" not in self.row(n)]
        with WorkerPool[Any, Any](works) as compilers:
            Pipeline(CleanPart(self), numbers, self.faults).run(compilers, benches, deadline)
        self._free(benches)

    def one_by_one(
        self, part: str, cold: int, benches: WorkerPool[Any, Any], deadline: float
    ) -> None:
        """The bench alone on an idle machine."""
        try:
            for number, order in self.orders(part, cold):
                if time.monotonic() > deadline:
                    break
                job = (number, type(order).__name__)
                benches.give(benches.idle()[0], [job], [order])
                self._wait(benches, min(deadline + OVERRUN_S, self.end))
                self._free(benches)
        finally:
            self.store()

    def _free(self, benches: WorkerPool[Any, Any]) -> None:
        """What overran is given up with its process; the next job starts another."""
        if benches.at_work():
            self.faults["bench: unfinished"] += 1
            benches.stop()

    def orders(self, part: str, cold: int) -> Iterator[tuple[int, Any]]:
        """What is left of a part, in order; of the cold one so many problems at most."""
        for number, posed in enumerate(self.problems):
            row = self.row(number)
            if part == "tuned" and "times" in row and DEFAULT not in row:
                yield number, Tune(posed.problem, frozenset(row["times"]))
            if part == "cold" and cold and "cold" not in row:
                cold -= 1
                yield number, Cold(posed.problem)

    def _wait(self, benches: WorkerPool[Any, Any], until: float) -> None:
        while benches.at_work() and time.monotonic() < until:
            for event in benches.read(0.5):
                self._take(event)
        if time.monotonic() - self._saved > SAVE_EVERY_S:
            self.store()
            self._saved = time.monotonic()

    def _take(self, event: JobResult[Any, Any] | WorkerDied[Any]) -> None:
        if isinstance(event, WorkerDied):
            if event.job is None:
                raise WorkerError(f"timing process: {event.reason}; look at the device")
            self.faults[f"bench: {event.reason}"] += 1
            return
        number, kind = event.job
        if isinstance(event.answer, Failed):
            self.faults[f"{kind}: {event.answer.reason}"] += 1
            self.row(number)["fault"] = f"{kind}: {event.answer.reason}"
        else:
            self.put(number, event.answer)

    def put(self, number: int, answer: Row) -> None:
        """A part's results into the problem's row."""
        row = self.row(number)
        for name, (ratio, noise) in answer.pop("ratios", {}).items():
            if ATEN in row.get("times", {}):
                row["times"][name] = (ratio * row["times"][ATEN][0], noise)
        row.update(answer)


@dataclass
class CleanPart:
    """How a problem of the clean part is prepared, compiled and timed (`assembly.Recipe`)."""

    run: Run
    _choices: dict[int, Choices] = field(default_factory=dict)

    def prepare(self, number: int) -> Pose:
        """Decide and render."""
        return Pose(self.run.problems[number])

    def kernels(self, number: int, answer: Choices) -> dict[Hashable, Compile]:
        """All that were rendered, torch-diode's own choice first."""
        self._choices[number] = answer
        row = self.run.row(number)
        row["diode"], row["decision_us"] = str(answer.diode), round(answer.decision_us, 1)
        row["listed"] = len(answer.default)
        chosen = sorted(answer.kernels, key=lambda kernel: kernel.candidate != answer.diode)
        return {(number, kernel.candidate): Compile(kernel) for kernel in chosen}

    def compiled(self, _: Hashable, answer: str) -> str:
        """What the compiler said."""
        return answer

    def is_enough(self, number: int, keys: Sequence[Hashable]) -> bool:
        """A few, torch-diode's own choice among them."""
        diode = self._choices[number].diode
        return len(keys) >= FEW and (diode.config is None or diode in self._candidates(keys))

    def time(self, number: int, keys: Sequence[Hashable]) -> Clean:
        """With what was compiled."""
        choices, wanted = self._choices[number], self._candidates(keys)
        kernels = tuple(kernel for kernel in choices.kernels if kernel.candidate in wanted)
        return Clean(self.run.problems[number].problem, choices.diode, kernels)

    def timed(self, number: int, answer: Row) -> None:
        """Into its row."""
        self.run.put(number, answer)

    def save(self) -> None:
        """All rows there are."""
        self.run.store()

    @staticmethod
    def _candidates(keys: Sequence[Any]) -> set[Candidate]:
        return {candidate for _, candidate in keys}
