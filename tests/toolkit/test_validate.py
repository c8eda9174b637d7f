"""validate() as a Python function; tests/cli has the command."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests import samples
from torch_diode.files.datasets import read_dataset
from torch_diode.model.checkpoint import load_network, save_model
from torch_diode.toolkit.validate import predict_clipped, validate
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError, InvalidValueError


@pytest.fixture(scope="module")
def apart(timings):
    return read_dataset(timings / "apart.msgpack")


@pytest.fixture(scope="module")
def result(trained, apart):
    return validate(trained, apart)


def with_metadata(trained, path, **changes):
    """A copy of a model with other metadata."""
    metadata, network = load_network(trained)
    save_model(path, network.state_dict(), replace(metadata, **changes))
    return path


def test_the_result_has_scores_baselines_and_worst_cases(result, apart):
    assert result.scored_on == "all 17 problems of the data"
    assert result.evaluation.model["all"][0].problems == 17
    assert set(result.evaluation.baselines) == {"analytical", "default list"}
    assert len(result.evaluation.noise) == 5
    assert result.evaluation.noise[0] >= 1
    regrets = [entry["regret"] for entry in result.worst_decisions(5)]
    assert regrets == sorted(regrets, reverse=True)
    assert regrets[0] == pytest.approx(result.evaluation.model["all"][0].max, rel=1e-3)
    factors = [entry["factor"] for entry in result.worst_predictions(4)]
    assert factors == sorted(factors, reverse=True)
    assert len(factors) == 4
    assert result.to_dict(worst=2)["hardware"] == "nvidia-h200"
    assert result.dataset == apart


def test_progress_is_reported(trained, apart):
    reports = []
    validate(trained, apart, baselines=False, progress=reports.append)
    assert [r.stage for r in reports] == ["Scoring", "Scoring"]
    assert reports[0].done == 0 < reports[1].done == reports[1].total


def test_a_file_and_its_dataset_score_the_same(trained, timings, result):
    other = validate(str(trained), timings / "apart.msgpack")
    assert other.evaluation == result.evaluation
    assert other.dataset_name == str(timings / "apart.msgpack")


def test_on_its_own_data_a_model_is_scored_on_what_was_held_out(trained, timings):
    own = timings / "train.parquet"
    assert "held out of training" in validate(trained, own, baselines=False).scored_on
    whole = validate(trained, own, score="all", baselines=False)
    assert "most of which it was trained on" in whole.scored_on
    part = validate(trained, own, ops=["mm"], baselines=False)
    assert "held out of training" in part.scored_on
    assert list(part.evaluation.model)[1] == "op=mm"


def test_data_without_aten_is_scored_and_noted(trained, timings):
    result = validate(trained, timings / "without_aten.parquet")
    assert result.evaluation.aten == {}
    assert any("ATen was not timed" in note for note in result.notes)


def test_problems_the_model_abstains_on_are_left_out(trained, timings, apart, tmp_path):
    half = with_metadata(trained, tmp_path / "m.pt", covers=["mm/float16"])
    result = validate(half, apart, baselines=False)
    scored = len(result.evaluated.problems)
    assert 0 < scored < 17
    assert result.scored_on == f"{scored} of 17 problems of the data"
    assert sum(result.abstained.values()) == 17 - scored
    assert any("the model abstains, the model was not trained on" in n for n in result.notes)
    with pytest.raises(EmptySelectionError, match="it was trained on: mm/float16"):
        validate(half, apart, ops=["bmm"])


def test_timings_of_another_chip_need_its_name(trained):
    h100 = Dataset.from_timings(
        replace(timing, hardware="nvidia-h100") for timing in samples.TIMINGS[:3]
    )
    with pytest.raises(HardwareMismatchError, match="give --hardware-name nvidia-h100"):
        validate(trained, h100)
    assert validate(trained, h100, hardware="nvidia-h100", baselines=False).evaluation.model
    a100 = Dataset.from_timings(replace(t, hardware="nvidia-a100") for t in samples.TIMINGS[:3])
    with pytest.raises(HardwareMismatchError, match="train one on these timings"):
        validate(trained, a100, hardware="nvidia-a100")


@pytest.mark.filterwarnings("ignore:overflow")
def test_predictions_are_kept_near_the_roofline_or_refused(result):
    network, table = result.network, result.evaluated.table
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    try:
        network.load_state_dict({**weights, "out.bias": weights["out.bias"] + 1e4})
        assert np.isfinite(predict_clipped(network, table)).all()
        nan = torch.full_like(weights["out.bias"], torch.nan)
        network.load_state_dict({**weights, "out.bias": nan})
        with pytest.raises(InvalidValueError, match="got a predicted time that is not a number"):
            predict_clipped(network, table)
    finally:
        network.load_state_dict(weights)
