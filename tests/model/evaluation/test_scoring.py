"""Judging predictions: against ATen, against baselines, with and without ATen's times."""

import numpy as np
import pytest

from torch_diode.model.evaluation.scoring import evaluate_predictions
from torch_diode.types.errors import EmptySelectionError


def without_aten(table):
    return table.take_rows(~table.is_aten)


def test_the_truth_is_without_regret_and_never_worse_than_aten(table):
    found = evaluate_predictions(table, table.time_us).evaluation
    assert all(score.max == 1 for scores in found.model.values() for score in scores)
    assert found.worse == ()
    assert found.errors["all"]["mse"] == 0


def test_who_picks_the_slowest_is_worse_than_aten_everywhere_it_was_timed(table):
    found = evaluate_predictions(table, 1 / table.time_us).evaluation
    assert "all" in found.worse
    assert "op=mm" in found.worse


def test_without_aten_there_is_no_such_baseline(table):
    part = without_aten(table)
    found = evaluate_predictions(part, part.time_us).evaluation
    assert found.aten == {}
    assert "aten" not in found.errors
    assert found.worse == ()


def test_a_baseline_is_scored_where_it_has_something_to_say(table):
    count = len(table.problem)
    half = np.full((count, 1), np.nan)
    half[: count // 2] = 1.5
    found = evaluate_predictions(table, table.time_us, {"half": half}).evaluation.baselines["half"][
        "all"
    ]
    assert [(score.k, score.problems) for score in found] == [(1, count // 2)]
    assert found[0].geomean == pytest.approx(1.5)
    silent = evaluate_predictions(
        table, table.time_us, {"none": np.full((count, 5), np.nan)}
    ).evaluation
    assert silent.baselines == {}


def test_the_worst_decision_is_the_greatest_regret(table):
    judged = evaluate_predictions(table, np.random.default_rng(0).permutation(table.time_us))
    (chosen, best), *_ = judged.worst_decisions(3)
    assert table.group[chosen] == table.group[best]
    ratio = table.time_us[chosen] / table.time_us[best]
    assert ratio == pytest.approx(judged.regrets[:, 0].max(), rel=1e-6)


def test_the_worst_prediction_is_the_one_furthest_off_either_way(table):
    predicted = table.time_us.copy()
    predicted[5] *= 9
    predicted[9] /= 7
    assert evaluate_predictions(table, predicted).worst_predictions(2) == [5, 9]


def test_a_problem_with_one_candidate_is_no_choice(table):
    """ATen was timed on many more problems than the configs were."""
    odd = table.group % 2 == 1
    part = table.take_rows(~odd | table.is_aten)
    judged = evaluate_predictions(part, 1 / part.time_us)
    assert (judged.problems % 2 == 0).all()
    even = table.take(np.arange(len(table.problem)) % 2 == 0)
    assert (
        judged.evaluation.model["all"]
        == evaluate_predictions(even, 1 / even.time_us).evaluation.model["all"]
    )
    alone = part.take(np.arange(len(table.problem)) % 2 == 1)
    with pytest.raises(EmptySelectionError, match="one candidate each"):
        evaluate_predictions(alone, alone.time_us)
