"""The shipped model of a CPU against the shipped validation data: what its card promises."""

import json

import pytest

from tests.conftest import ROOT
from torch_diode.toolkit.validate import validate

MODEL = ROOT / "trained_models/matmul/amd-zen5/matmul.pt"
DATA = ROOT / "diode_datasets/matmul/amd-zen5/validation"


@pytest.fixture(scope="module")
def evaluation():
    return validate(MODEL, DATA).evaluation


def test_the_first_choice_is_within_a_percent_and_a_half_of_the_best(evaluation):
    scores = {score.k: score for score in evaluation.model["all"]}
    assert scores[1].geomean <= 1.015
    assert scores[3].geomean <= 1.001
    assert scores[1].problems > 600


@pytest.mark.parametrize("threads", [1, 2])
def test_float32_takes_seven_tenths_of_torchs_time_and_half_in_frozen_graphs(evaluation, threads):
    unfrozen, frozen = evaluation.over_plain["unfrozen"], evaluation.over_plain["frozen"]
    for layout in ("nn", "nt"):
        name = f"precision=float32,layout={layout},threads={threads}"
        assert unfrozen[name].geomean <= 0.72
        assert frozen[name].geomean <= 0.52


def test_hardly_a_decision_is_slower_than_torchs(evaluation):
    over = evaluation.over_plain
    assert over["unfrozen"]["all"].slower <= 4
    assert over["unfrozen"]["precision=bfloat16"].slower == 0
    assert over["frozen"]["all"].slower <= 2
    assert over["all"]["all"].slower <= 1
    assert over["all"]["all"].p99 <= 1.05


def test_the_card_has_these_scores(evaluation):
    card = json.loads(MODEL.with_suffix(".json").read_text())
    first = evaluation.model["all"][0]
    assert card["held_out"]["model"]["all"][0]["geomean"] == pytest.approx(first.geomean, abs=1e-5)
