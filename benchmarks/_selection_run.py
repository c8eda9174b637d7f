"""Run of the live selection benchmark: requests to its processes by part, and their results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from _selection import DEFAULT, Posed, Row
from _selection_bench import Clean, Cold, Tune
from _selection_compiling import Choices, Compile, Pose

from torch_diode.collection.workers.pool import (
    HandlerFactory,
    JobResult,
    WorkerDied,
    WorkerError,
    WorkerPool,
)
from torch_diode.types.candidate import ATEN, Candidate
from workflows.measuring.jobs import Failed
from workflows.measuring.pipeline import SAVE_EVERY_S, Pipeline

OVERRUN_S = 30.0
"""Grace period of a job that was started in time."""
FEW = 8


@dataclass
class Run:
    """The problems and their rows; `end` is the deadline (`time.monotonic`)."""

    problems: Sequence[Posed]
    rows: dict[str, Row]
    store: Callable[[], None]
    end: float
    faults: Counter[str] = field(default_factory=Counter)
    _saved: float = 0.0

    def row(self, number: int) -> Row:
        """Row of a problem."""
        posed = self.problems[number]
        start = {"problem": posed.problem.key, "set": posed.origin, "swept": bool(posed.swept)}
        return self.rows.setdefault(posed.problem.key, start)

    def clean(
        self, benches: WorkerPool[Any, Any], works: Sequence[HandlerFactory], deadline: float
    ) -> None:
        """Compile on all cores, and time problems as they are ready."""
        numbers = [n for n in range(len(self.problems)) if "times" not in self.row(n)]
        with WorkerPool[Any, Any](works) as compilers:
            Pipeline(CleanPart(self), numbers, self.faults).run(compilers, benches, deadline)
        self._free(benches)

    def one_by_one(
        self, part: str, cold: int, benches: WorkerPool[Any, Any], deadline: float
    ) -> None:
        """Run one request at a time on an otherwise idle machine."""
        try:
            for number, request in self.requests(part, cold):
                if time.monotonic() > deadline:
                    break
                job = (number, type(request).__name__)
                benches.submit(benches.idle()[0], [job], [request])
                self._wait(benches, min(deadline + OVERRUN_S, self.end))
                self._free(benches)
        finally:
            self.store()

    def _free(self, benches: WorkerPool[Any, Any]) -> None:
        """Stop a job that exceeded its time, with its process; the next job starts another."""
        if benches.unfinished_jobs():
            self.faults["bench: unfinished"] += 1
            benches.stop()

    def requests(self, part: str, cold: int) -> Iterator[tuple[int, Any]]:
        """Remaining requests of a part, in order; a limited number for the cold part."""
        for number, posed in enumerate(self.problems):
            row = self.row(number)
            if part == "tuned" and "times" in row and DEFAULT not in row:
                yield number, Tune(posed.problem, frozenset(row["times"]))
            if part == "cold" and cold and "cold" not in row:
                cold -= 1
                yield number, Cold(posed.problem)

    def _wait(self, benches: WorkerPool[Any, Any], until: float) -> None:
        while benches.unfinished_jobs() and time.monotonic() < until:
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
        if isinstance(event.result, Failed):
            self.faults[f"{kind}: {event.result.reason}"] += 1
            self.row(number)["fault"] = f"{kind}: {event.result.reason}"
        else:
            self.put(number, event.result)

    def put(self, number: int, answer: Row) -> None:
        """Store a part's results in the problem's row."""
        row = self.row(number)
        for name, (ratio, noise) in answer.pop("ratios", {}).items():
            if ATEN in row.get("times", {}):
                row["times"][name] = (ratio * row["times"][ATEN][0], noise)
        row.update(answer)


@dataclass
class CleanPart:
    """Prepares, compiles and times problems of the clean part (`pipeline.PipelineSpec`)."""

    run: Run
    _choices: dict[int, Choices] = field(default_factory=dict)

    def prepare(self, number: int) -> Pose:
        """Request to decide and render."""
        return Pose(self.run.problems[number])

    def kernels(self, number: int, answer: Choices) -> dict[Hashable, Compile]:
        """All rendered kernels, torch-diode's own choice first."""
        self._choices[number] = answer
        row = self.run.row(number)
        row["diode"], row["decision_us"] = str(answer.diode), round(answer.decision_us, 1)
        row["listed"] = len(answer.default)
        chosen = sorted(answer.kernels, key=lambda kernel: kernel.candidate != answer.diode)
        return {(number, kernel.candidate): Compile(kernel) for kernel in chosen}

    def compiled(self, _: Hashable, answer: str) -> str:
        """Error of the compiler, or empty."""
        return answer

    def is_enough(self, number: int, keys: Sequence[Hashable]) -> bool:
        """Whether a few kernels are compiled, torch-diode's own choice among them."""
        diode = self._choices[number].diode
        return len(keys) >= FEW and (diode.config is None or diode in self._candidates(keys))

    def time(self, number: int, keys: Sequence[Hashable]) -> Clean:
        """Request to time the compiled kernels."""
        choices, wanted = self._choices[number], self._candidates(keys)
        kernels = tuple(kernel for kernel in choices.kernels if kernel.candidate in wanted)
        return Clean(self.run.problems[number].problem, choices.diode, kernels)

    def timed(self, number: int, answer: Row) -> None:
        """Store the times in the problem's row."""
        self.run.put(number, answer)

    def save(self) -> None:
        """Save all rows."""
        self.run.store()

    @staticmethod
    def _candidates(keys: Sequence[Any]) -> set[Candidate]:
        return {candidate for _, candidate in keys}
