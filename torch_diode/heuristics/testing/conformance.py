"""Conformance suite for heuristics, including third-party ones.

    from torch_diode.heuristics.testing.conformance import check_heuristic

    def test_my_heuristic_conforms():
        check_heuristic(MyHeuristic()).raise_if_failed()

It ranks problems of every op, dtype and layout, with ordinary and odd sizes, on the whole candidate
space and on parts of it. Abstaining is always valid; a wrong answer never is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from torch_diode.candidates import candidate_space
from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, DTYPES, OPS, MMShape
from torch_diode.types.ranking import Ranking

DEFAULT_HARDWARE = "nvidia-h200"
_SIZES = ((1, 1, 1), (1, 4096, 4096), (17, 31, 63), (512, 512, 512), (16, 16, 65536))
_HUGE = (1 << 20, 1 << 16, 1 << 14)


class ConformanceError(DiodeError, AssertionError):
    """A heuristic violates the protocol."""


@dataclass
class ConformanceReport:
    """Numbers of questions and answers, failures, and the time per answer (reported only)."""

    heuristic: str
    questions: int = 0
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if nothing failed."""
        return not self.failures

    @property
    def median_us(self) -> float:
        """The median time of an answer or an abstention, in microseconds."""
        return float(np.median(self.seconds)) * 1e6 if self.seconds else 0.0

    def raise_if_failed(self) -> ConformanceReport:
        """The report itself, or an error that lists every failure."""
        if self.failures:
            raise ConformanceError(f"{self.heuristic} does not conform:\n  " + self._listed())
        return self

    def _listed(self) -> str:
        return "\n  ".join(dict.fromkeys(self.failures))

    def __str__(self) -> str:
        outcome = "conforms" if self.passed else "does not conform:\n  " + self._listed()
        return (
            f"{self.heuristic}: answered {self.answered} of {self.questions} questions, "
            f"median {self.median_us:.0f} us; {outcome}"
        )


def check_heuristic(
    heuristic: Heuristic,
    hardware: Hardware | None = None,
    problems: Sequence[MMShape] | None = None,
) -> ConformanceReport:
    """Run the whole suite; a failure or `DiodeError` is in the report, other errors propagate."""
    if hardware is None:
        from torch_diode.hardware import known

        hardware = known(DEFAULT_HARDWARE)
    return _Suite(heuristic, hardware).run(edge_problems() if problems is None else problems)


def edge_problems() -> Iterator[MMShape]:
    """Every op with every dtype, every layout, and sizes from one to huge."""
    for op in OPS:
        batch = 3 if op in BATCHED else 1
        for dtype in DTYPES:
            yield MMShape(op, 64, 128, 256, B=batch, dtype=dtype)
        for layout in ("nt", "tn", "tt"):
            a, b = (letter == "t" for letter in layout)
            yield MMShape(op, 200, 72, 1000, B=batch, transpose_a=a, transpose_b=b)
        for m, n, k in (*_SIZES, _HUGE):
            yield MMShape(op, m, n, k, B=batch)
    yield MMShape("mm", 128, 128, 128, dtype="float32", tf32=True)
    yield MMShape("mm", 128, 128, 128, out_dtype="float32")
    yield MMShape("addmm", 128, 128, 128, bias="matrix")


class _Suite:
    def __init__(self, heuristic: Heuristic, hardware: Hardware) -> None:
        self.heuristic, self.hardware = heuristic, hardware
        self.report = ConformanceReport(getattr(heuristic, "name", type(heuristic).__name__))

    def run(self, problems: Iterable[MMShape]) -> ConformanceReport:
        self._check_identity()
        before = self.heuristic.fingerprint()
        for problem in problems:
            space = candidate_space(problem, self.hardware)
            for candidates in _variants(space):
                self._check_answer(problem, candidates)
            self._check_order_independence(problem, space)
        if self.heuristic.fingerprint() != before:
            self._fail("fingerprint: got another one after ranking; expected the same")
        return self.report

    def _fail(self, text: str) -> None:
        self.report.failures.append(text)

    def _check_identity(self) -> None:
        name, text = getattr(self.heuristic, "name", None), self.heuristic.fingerprint()
        if not isinstance(name, str) or not name:
            self._fail(f"name: got {name!r:.80}; expected a short text")
        if not isinstance(text, str) or not text or " at 0x" in text:
            self._fail(
                f"fingerprint: got {text!r:.80}; expected a text without addresses in memory"
            )
        if text != self.heuristic.fingerprint():
            self._fail("fingerprint: got two for one heuristic; expected the same")

    def _check_answer(self, problem: MMShape, candidates: Candidates) -> None:
        where = f"{problem} with {len(candidates)} candidates"
        copy = _copied(candidates)
        start = time.perf_counter()
        first = self._rank(problem, copy, where)
        self.report.seconds.append(time.perf_counter() - start)
        self.report.questions += 1
        if not _same(copy, candidates):
            self._fail(f"{where}: got its input changed; expected it left alone")
        second = self._rank(problem, _copied(candidates), where)
        if (first is None) != (second is None):
            self._fail(f"{where}: answered once and abstained once; expected the same")
        if first is None or second is None:
            return
        self.report.answered += 1
        if not isinstance(first, Ranking):
            self._fail(f"{where}: got {type(first).__name__}; expected a Ranking or None")
        elif len(first.predicted_us) != len(candidates):
            got = len(first.predicted_us)
            self._fail(f"{where}: got {got} times; expected one for each candidate")
        elif not _equal(first, second):
            self._fail(f"{where}: got two answers to one question; expected the same")
        elif not first.source:
            self._fail(f"{where}: got no source; expected the heuristic's name")

    def _check_order_independence(self, problem: MMShape, space: Candidates) -> None:
        where = f"{problem} in another order"
        if len(space) < 2:
            return
        shuffled = np.random.default_rng(0).permutation(len(space))
        winners = []
        for rows in (np.arange(len(space)), np.arange(len(space))[::-1], shuffled):
            candidates = space.take(rows)
            ranking = self._rank(problem, candidates, where)
            valid = isinstance(ranking, Ranking) and int(ranking.order[0]) < len(candidates)
            winners.append(str(candidates[int(ranking.order[0])]) if ranking and valid else "")
        if len(set(winners)) != 1:
            listed = ", ".join(winner or "abstained" for winner in winners)
            self._fail(f"{where}: got winners {listed}; expected one and the same")

    def _rank(self, problem: MMShape, candidates: Candidates, where: str) -> Ranking | None:
        try:
            return self.heuristic.rank(problem, candidates, self.hardware)
        except DiodeError as fault:
            self._fail(f"{where}: raised {fault}; expected an answer or None")
            return None


def _variants(space: Candidates) -> Iterator[Candidates]:
    """The whole space, ATen alone, and the last candidate alone."""
    yield space
    yield Candidates.of([Candidate(ATEN)])
    if len(space) > 1:
        yield space.take(np.array([len(space) - 1]))


def _copied(candidates: Candidates) -> Candidates:
    fields = {name: values.copy() for name, values in candidates.fields.items()}
    return Candidates(candidates.templates, candidates.template.copy(), fields)


def _same(left: Candidates, right: Candidates) -> bool:
    return np.array_equal(left.template, right.template) and all(
        np.array_equal(left.fields[name], right.fields[name]) for name in left.fields
    )


def _equal(left: Ranking, right: Ranking) -> bool:
    same = np.array_equal(left.order, right.order) and left.source == right.source
    return same and np.array_equal(left.predicted_us, right.predicted_us, equal_nan=True)
