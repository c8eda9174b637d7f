"""Tables of an evaluation: regret, slices, errors, the worst cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_diode.cli.console.output import print_line, print_table
from torch_diode.model.evaluation.over_plain import SLOWER
from torch_diode.model.evaluation.regret import KS, Score
from torch_diode.model.evaluation.scoring import Evaluation

OFFER_NAMES = {
    "unfrozen": "ATen and oneDNN on offer",
    "frozen": "packed weights and templates on offer",
    "all": "all candidates on offer",
}
_HEAD = ("", "problems", *(f"@{k}" for k in KS), "p95@1", "p99@1", "max@1")


def print_evaluation(evaluation: Evaluation) -> None:
    """Print all scores of a model."""
    print_regret(evaluation)
    print_slices(evaluation)
    print_over_plain(evaluation)
    print_errors(evaluation)


def print_regret(evaluation: Evaluation) -> None:
    """Print the regret of the model and of the baselines, and that of noise alone."""
    rows = [("model", *_numbers(evaluation.model["all"]))]
    if evaluation.noise:
        rows.append(("noise alone", "", *_four(evaluation.noise), "", "", ""))
    if evaluation.aten:
        rows.append(("ATen alone", *_numbers(evaluation.aten["all"])))
    rows += [(name, *_numbers(slices["all"])) for name, slices in evaluation.baselines.items()]
    _print(_HEAD, rows, "Regret@k, geometric mean over problems")


def print_slices(evaluation: Evaluation) -> None:
    """Print the regret by op, dtype, layout, size and divisibility."""
    baselines = {
        **({"ATen alone": evaluation.aten} if evaluation.aten else {}),
        **evaluation.baselines,
    }
    rows = []
    for name, scores in evaluation.model.items():
        first = [f"{s[name][0].geomean:.4f}" if name in s else "-" for s in baselines.values()]
        model = (*_four([s.geomean for s in scores[:3]]), f"{scores[0].p99:.3f}")
        rows.append((name, scores[0].problems, *model, *first))
    names = ("slice", "problems", "@1", "@3", "@5", "p99@1", *baselines)
    _print(names, rows, "Slices")


def print_over_plain(evaluation: Evaluation) -> None:
    """Print a CPU's decisions over plain torch's, for each offer of a compile."""
    for offer, slices in evaluation.over_plain.items():
        rows = [
            (name, s.problems, *_four([s.geomean, s.best]), f"{s.p99:.3f}", f"{s.worst:.3f}",
             s.slower, s.unsure, f"{s.changed:.0%}")
            for name, s in slices.items()
        ]  # fmt: skip
        times = ("chosen", "best", "p99", "worst", f">{SLOWER}")
        names = ("slice", "problems", *times, "unsure", "not plain")
        title = f"Times over plain torch's, {OFFER_NAMES.get(offer, offer)}"
        _print(names, rows, title)


def print_errors(evaluation: Evaluation) -> None:
    """Print the error of the predicted times."""
    rows = [
        (part, int(e["rows"]), f"{e['mse']:.5f}", f"{e['rmse']:.4f}", f"{e['factor']:.3f}x",
         f"{e['median']:.3f}x")
        for part, e in evaluation.errors.items()
    ]  # fmt: skip
    names = ("timings of", "timings", "MSE (log)", "RMSE (log)", "as a factor", "median")
    _print(names, rows, "Error of predicted times")


def print_worst(decisions: Sequence[dict[str, Any]], predictions: Sequence[dict[str, Any]]) -> None:
    """Print the decisions that cost most, and the times that are furthest off."""
    if not predictions:
        return
    rows: list[tuple[Any, ...]] = [
        (d["problem"], d["chosen"], d["chosen_us"], d["best"], d["best_us"], f"{d['regret']:.3f}x")
        for d in decisions
    ]
    head: tuple[str, ...] = ("problem", "chosen", "µs", "best", "µs", "regret")
    _print(head, rows, f"{len(rows)} worst decisions", "llrlrr")
    rows = [
        (p["problem"], p["candidate"], p["predicted_us"], p["measured_us"], f"{p['factor']:.2f}x")
        for p in predictions
    ]
    head = ("problem", "config", "predicted µs", "measured µs", "off by")
    _print(head, rows, f"{len(rows)} worst predictions", "llrrr")


def _print(head: Sequence[str], rows: Sequence[Sequence[Any]], title: str, sides: str = "") -> None:
    """Print a table after an empty line; all columns but the first are aligned right by default."""
    print_line("")
    print_table(head, rows, title=title, right=sides or "l" + "r" * (len(head) - 1))


def _numbers(scores: Sequence[Score]) -> list[Any]:
    means = _four([score.geomean for score in scores])
    first = scores[0]
    rest = [f"{value:.3f}" for value in (first.p95, first.p99, first.max)]
    return [first.problems, *means, *["-"] * (len(KS) - len(means)), *rest]


def _four(values: Sequence[float]) -> list[str]:
    return [f"{value:.4f}" for value in values]
