from __future__ import annotations

from dataclasses import replace

from tests.samples import H200, LARGE, LINEAR, SMALL
from torch_diode.heuristics.questions import ReductionSplit
from torch_diode.integration.deciding.record import (
    Answered,
    AnswerRecord,
    Decision,
    Decisions,
    Record,
)
from torch_diode.types.timing import Prediction

WITHOUT_TIME = Prediction(SMALL, None)


def decision(microseconds: float = 150.0) -> Decision:
    return Decision(
        problem=LINEAR,
        hardware="nvidia-h200",
        winner=Prediction(LARGE, 19.75),
        runners_up=(WITHOUT_TIME,),
        source="model",
        microseconds=microseconds,
        mode="plain",
        kept=1,
        ranked=1240,
    )


def test_the_table_has_problem_winner_runner_up_and_heuristic() -> None:
    head, _, row = str(Decisions([decision()])).splitlines()
    assert head.split("  ")[0] == "problem"
    for text in (str(LINEAR), str(LARGE), "19.8", str(SMALL), "model", "1/1240", "150"):
        assert text in row
    assert str(Decisions()) == "no decisions recorded"


def test_what_torch_runs_stands_beside_and_the_total_saved_below() -> None:
    known = replace(decision(), plain=Prediction(SMALL, 39.5))
    head, _, row, total = str(Decisions([known, replace(known, microseconds=50.0)])).splitlines()
    assert "torch's us" in head
    assert row.split()[-2:] == ["2", "100"], "equal decisions share a row"
    assert "39.5" in row
    assert total == (
        "2 matmuls, by these times: 39.5 us, 79.0 with torch's own kernels; 39.5 us saved (50%)"
    )


def test_an_order_without_times_has_none_in_the_table() -> None:
    assert WITHOUT_TIME.predicted_us is None
    assert str(WITHOUT_TIME) == str(SMALL)


def test_the_oldest_decision_is_dropped_first() -> None:
    record = Record(size=2)
    for microseconds in (1.0, 2.0, 3.0):
        record.add(decision(microseconds))
    assert [d.microseconds for d in record.explain()] == [2.0, 3.0]


def answered(parts: int) -> Answered:
    return Answered(ReductionSplit(H200, 1, 64, 512, True), parts, "mine", 21.6)


def test_an_answer_given_again_is_counted_and_the_oldest_is_dropped_first() -> None:
    record = AnswerRecord(size=2)
    for parts in (2, 4, 4, 8):
        record.add(answered(parts))
    assert [(each.answer, each.times) for each in record] == [(4, 2), (8, 1)]
    *_, row = str(Decisions([decision()], record)).splitlines()
    assert row.split() == [
        "split",
        "outputs=64",
        "length=512",
        "inner=True",
        *["8", "1", "mine", "1", "22"],
    ]
