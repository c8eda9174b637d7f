"""Tables of an evaluation: regret, slices, errors, the worst cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_diode.cli.console.output import print_line, print_table
from torch_diode.model.card import over_plain_rows, regret_rows
from torch_diode.model.evaluation.over_plain import SLOWER
from torch_diode.model.evaluation.regret import KS
from torch_diode.model.evaluation.scoring import Evaluation

OFFER_NAMES = {
    "unfrozen": "ATen and oneDNN on offer",
    "frozen": "packed weights and templates on offer",
    "all": "all candidates on offer",
}


def print_evaluation(evaluation: Evaluation) -> None:
    """Print all scores of a model."""
    print_regret(evaluation)
    print_slices(evaluation)
    print_over_plain(evaluation)
    print_errors(evaluation)


def print_regret(evaluation: Evaluation) -> None:
    """Print the regret of the model and of the baselines, and that of noise alone."""
    head = ("", "problems", *(f"@{k}" for k in KS), "p95@1", "p99@1", "max@1")
    rows = regret_rows(evaluation, "model", missing="-")
    _print(head, rows, "Regret@k, geometric mean over problems")


def print_slices(evaluation: Evaluation) -> None:
    """Print the regret by op, dtype, layout, size and divisibility."""
    baselines = {
        **({"ATen alone": evaluation.aten} if evaluation.aten else {}),
        **evaluation.baselines,
    }
    rows = []
    for name, scores in evaluation.model.items():
        first = [f"{s[name][0].geomean:.4f}" if name in s else "-" for s in baselines.values()]
        means = [f"{score.geomean:.4f}" for score in scores[:3]]
        rows.append((name, scores[0].problems, *means, f"{scores[0].p99:.3f}", *first))
    names = ("slice", "problems", "@1", "@3", "@5", "p99@1", *baselines)
    _print(names, rows, "Slices")


def print_over_plain(evaluation: Evaluation) -> None:
    """Print a CPU's decisions over plain torch's, for each offer of a compile."""
    for offer, slices in evaluation.over_plain.items():
        times = ("chosen", "best", "p99", "worst", f">{SLOWER}")
        names = ("slice", "problems", *times, "unsure", "not plain")
        title = f"Times over plain torch's, {OFFER_NAMES.get(offer, offer)}"
        _print(names, over_plain_rows(slices), title)


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
