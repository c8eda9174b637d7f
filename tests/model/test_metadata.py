"""Metadata of a trained model state where it comes from and how good it is."""

import numpy as np
import pyarrow as pa
import pytest

from torch_diode.model.checkpoint import load_model, save_model
from torch_diode.model.evaluation.scoring import evaluate_predictions, predict_times
from torch_diode.model.metadata import build_metadata
from torch_diode.model.training.options import TrainingOptions
from torch_diode.model.training.split import split_table
from torch_diode.model.training.trainer import train
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset

OPTIONS = TrainingOptions(
    shape={"hidden": 8, "layers": 1}, epochs=1, evaluate_every=1, aten_epochs=1
)


@pytest.fixture(scope="module")
def run(table):
    """A split, the network trained on it, its predictions for the test part and their scores."""
    parts = split_table(table, OPTIONS)
    trained = train(parts, OPTIONS)
    predicted = predict_times(trained.network, parts.test)
    return parts, trained, predicted, evaluate_predictions(parts.test, predicted).evaluation


def test_from_timings_to_a_model_that_ranks(run, dataset, h200, tmp_path):
    parts, trained, predicted, evaluation = run
    metadata = build_metadata(trained, parts.train, dataset, h200, evaluation)
    save_model(tmp_path / "m.pt", trained.network.state_dict(), metadata)
    model = load_model(tmp_path / "m.pt")
    assert model.metadata.dataset_digest == dataset.digest
    assert (model.metadata.torch, model.metadata.triton) == (["2.11.0"], ["3.6.0"])
    assert "mm/bfloat16" in model.metadata.covers
    assert model.metadata.decides_alone == ["nvidia-h200"]
    assert model.metadata.configs == {}
    assert model.metadata.scores["all"]["regret@1"] == round(evaluation.model["all"][0].geomean, 5)

    row = int(np.flatnonzero(~parts.test.is_aten)[0])
    timing = dataset[int(parts.test.rows[row])]
    assert model.supports(timing.problem, h200) is None
    times, _ = model.predict_us(timing.problem, Candidates.of([timing.candidate]), h200)
    assert np.allclose(times, predicted[row], rtol=1e-3)


def test_timings_with_the_launch_in_them_earn_no_trust_and_limit_the_configs(run, dataset, h200):
    parts, trained, _, evaluation = run
    column = dataset.table.schema.get_field_index("method")
    methods = pa.array(["feedback"] * len(dataset))
    source = {"source": ("a log",), "templates": ("triton::mm=ab",)}
    logged = Dataset(dataset.table.set_column(column, "method", methods), source)
    metadata = build_metadata(trained, parts.train, logged, h200, evaluation)
    assert metadata.decides_alone == []
    assert metadata.provenance == {"source": ["a log"]}
    timed = {str(t.candidate).partition(" g8")[0] for t in logged if t.candidate.triton}
    assert len(timed) > 1
    named = {f"{name} {c[0]}x{c[1]}x{c[2]}" for name, cs in metadata.configs.items() for c in cs}
    assert named <= timed
