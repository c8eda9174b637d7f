"""An evaluation as a person reads it: regret, slices, errors, the worst cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_diode.cli.console.output import print_line, print_table
from torch_diode.model.evaluation.regret import KS, Score
from torch_diode.model.evaluation.scoring import EvaluatedPredictions, Evaluation
from torch_diode.types.dataset import Dataset

_HEAD = ("", "problems", *(f"@{k}" for k in KS), "p95@1", "p99@1", "max@1")


def print_regret(found: Evaluation) -> None:
    """The model's regret, the noise in it, and what it is held against."""
    rows = [("model", *_numbers(found.model["all"]))]
    if found.noise:
        rows.append(("noise alone", "", *_four(found.noise), "", "", ""))
    if found.aten:
        rows.append(("ATen alone", *_numbers(found.aten["all"])))
    rows += [(name, *_numbers(slices["all"])) for name, slices in found.baselines.items()]
    print_line("")
    print_table(_HEAD, rows, title="Regret@k, geometric mean over problems", right="l" + "r" * 9)


def print_slices(found: Evaluation) -> None:
    """The same by op, dtype, layout, size and divisibility."""
    held = {**({"ATen alone": found.aten} if found.aten else {}), **found.baselines}
    rows = []
    for name, scores in found.model.items():
        first = [f"{s[name][0].geomean:.4f}" if name in s else "-" for s in held.values()]
        model = (*_four([s.geomean for s in scores[:3]]), f"{scores[0].p99:.3f}")
        rows.append((name, scores[0].problems, *model, *first))
    names = ("slice", "problems", "@1", "@3", "@5", "p99@1", *held)
    print_line("")
    print_table(names, rows, title="Slices", right="l" + "r" * (len(names) - 1))


def print_errors(found: Evaluation) -> None:
    """How far the predicted times are off."""
    rows = [
        (part, int(e["rows"]), f"{e['mse']:.5f}", f"{e['rmse']:.4f}", f"{e['factor']:.3f}x",
         f"{e['median']:.3f}x")
        for part, e in found.errors.items()
    ]  # fmt: skip
    names = ("timings of", "timings", "MSE (log)", "RMSE (log)", "as a factor", "median")
    print_line("")
    print_table(names, rows, title="Error of predicted times", right="lrrrrr")


def print_worst(judged: EvaluatedPredictions, dataset: Dataset, count: int) -> None:
    """The decisions that cost most, and the times that are furthest off."""
    if not count:
        return
    decisions = [
        (d["problem"], d["chosen"], d["chosen_us"], d["best"], d["best_us"], f"{d['regret']:.3f}x")
        for d in worst_decisions(judged, dataset, count)
    ]
    head: tuple[str, ...] = ("problem", "chosen", "µs", "best", "µs", "regret")
    print_line("")
    print_table(head, decisions, title=f"{len(decisions)} worst decisions", right="llrlrr")
    predictions = [
        (p["problem"], p["candidate"], p["predicted_us"], p["measured_us"], f"{p['factor']:.2f}x")
        for p in worst_predictions(judged, dataset, count)
    ]
    head = ("problem", "config", "predicted µs", "measured µs", "off by")
    print_line("")
    print_table(head, predictions, title=f"{len(predictions)} worst predictions", right="llrrr")


def worst_decisions(
    judged: EvaluatedPredictions, dataset: Dataset, count: int
) -> list[dict[str, Any]]:
    """What was chosen and what would have been best, worst first; only what has any regret."""
    found = []
    for chosen, best in judged.worst_decisions(count):
        taken, missed = (dataset[int(judged.table.rows[row])] for row in (chosen, best))
        assert taken.time_us is not None
        assert missed.time_us is not None
        if taken.time_us <= missed.time_us:
            break
        found.append(
            {
                "problem": taken.problem.key,
                "chosen": str(taken.candidate),
                "chosen_us": taken.time_us,
                "best": str(missed.candidate),
                "best_us": missed.time_us,
                "regret": round(taken.time_us / missed.time_us, 5),
            }
        )
    return found


def worst_predictions(
    judged: EvaluatedPredictions, dataset: Dataset, count: int
) -> list[dict[str, Any]]:
    """The rows whose predicted time is furthest off, worst first."""
    found = []
    for row in judged.worst_predictions(count):
        timing = dataset[int(judged.table.rows[row])]
        predicted, measured = float(judged.predicted[row]), float(judged.table.time_us[row])
        found.append(
            {
                "problem": timing.problem.key,
                "candidate": str(timing.candidate),
                "predicted_us": round(predicted, 3),
                "measured_us": round(measured, 3),
                "factor": round(max(predicted / measured, measured / predicted), 5),
            }
        )
    return found


def say_notes(notes: Sequence[str]) -> None:
    """What has to be known to read the numbers."""
    for note in notes:
        print_line(f"Note: {note}.")


def _numbers(scores: Sequence[Score]) -> list[Any]:
    means = _four([score.geomean for score in scores])
    first = scores[0]
    rest = [f"{value:.3f}" for value in (first.p95, first.p99, first.max)]
    return [first.problems, *means, *["-"] * (len(KS) - len(means)), *rest]


def _four(values: Sequence[float]) -> list[str]:
    return [f"{value:.4f}" for value in values]
