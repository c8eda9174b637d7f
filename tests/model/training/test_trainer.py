"""Training on a few real problems: it learns, repeats itself, and goes on where it stopped."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torch_diode.model.evaluation.scoring import best_shift, evaluate_predictions, predict_times
from torch_diode.model.training.options import TrainingOptions
from torch_diode.model.training.split import split_table
from torch_diode.model.training.trainer import train
from torch_diode.types.errors import FileFaultError

SMALL = TrainingOptions(
    shape={"hidden": 16, "layers": 1, "aten_hidden": 16},
    epochs=4,
    batch_problems=16,
    evaluate_every=2,
    aten_epochs=10,
)


@pytest.fixture(scope="module")
def parts(table):
    torch.set_num_threads(1)
    return split_table(table, SMALL)


@pytest.fixture(scope="module")
def trained(parts):
    return train(parts, SMALL)


def test_a_few_epochs_beat_aten_alone_at_three(trained, parts):
    found = evaluate_predictions(parts.test, predict_times(trained.network, parts.test)).evaluation
    assert found.model["all"][1].geomean < found.aten["all"][0].geomean
    assert trained.history[-1]["loss"] < trained.history[0]["loss"]


@pytest.mark.parametrize(("stopped", "left"), [(1, [1, 2, 3, 4]), (3, [3, 4])])
def test_a_stopped_run_goes_on_to_the_same_end(stopped, left, trained, parts, tmp_path):
    class Stop(Exception):
        pass

    def stop(row):
        if row.get("epoch") == stopped:
            raise Stop

    state = tmp_path / "run.state"
    with pytest.raises(Stop):
        train(parts, SMALL, stop, state)
    seen = []
    resumed = train(parts, SMALL, seen.append, state)
    assert [row["epoch"] for row in seen] == left, "the heads were trained"
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name]), name


def test_the_state_of_another_run_is_refused(parts, tmp_path):
    options, state = replace(SMALL, epochs=2, aten_epochs=1), tmp_path / "run.state"
    train(parts, options, state_path=state)
    with pytest.raises(FileFaultError, match="other options"):
        train(parts, replace(options, seed=5), state_path=state)
    with pytest.raises(FileFaultError, match="other data"):
        train(replace(parts, validation=parts.test), options, state_path=state)


def test_a_damaged_state_is_refused(parts, tmp_path):
    (tmp_path / "run.state").write_bytes(b"no such thing")
    with pytest.raises(FileFaultError, match=r"run\.state"):
        train(parts, SMALL, state_path=tmp_path / "run.state")


def weights_of(trained):
    return {name: value.numpy() for name, value in trained.network.state_dict().items()}


def test_training_on_from_a_network_never_ends_worse_on_validation(trained, parts):
    rash = replace(SMALL, learning_rate=0.5, epochs=2, evaluate_every=1, aten_epochs=1)
    further = train(parts, rash, initial=weights_of(trained))
    scores = [
        evaluate_predictions(
            parts.validation, predict_times(run.network, parts.validation)
        ).evaluation.model["all"][0]
        for run in (trained, further)
    ]
    assert scores[1].geomean <= scores[0].geomean + 1e-6
    assert further.history[0]["epoch"] == 0


def test_where_aten_was_never_timed_it_counts_as_the_best_config(table):
    parts = split_table(table.take_rows(~table.is_aten), SMALL)
    network = train(parts, replace(SMALL, epochs=1)).network
    problem, vendor = (torch.from_numpy(values) for values in (table.problem, table.vendor))
    said = network.aten(problem, vendor).detach().numpy()
    best = np.full(len(table.problem), np.inf)
    np.minimum.at(best, parts.train.group, parts.train.target)
    assert np.allclose(said, best[np.isfinite(best)].mean(), atol=1e-4)


def test_the_shift_of_aten_is_found(table):
    truth = table.target
    biased = np.where(table.is_aten, truth + 0.10, truth)
    assert best_shift(table, biased) == pytest.approx(-0.10, abs=0.03)
