"""A trained model's file and card say where it comes from."""

from __future__ import annotations

import json

import numpy as np

from torch_diode.model.checkpoint import load_model, save_model
from torch_diode.model.evaluation.scoring import evaluate_predictions, predict_times
from torch_diode.model.provenance import card, dataset_noise_floor, describe
from torch_diode.model.training.trainer import TrainingOptions, split_table, train


def test_from_timings_to_a_model_that_ranks(dataset, table, hardware, tmp_path):
    options = TrainingOptions(
        shape={"hidden": 8, "layers": 1}, epochs=1, evaluate_every=1, aten_epochs=1
    )
    parts = split_table(table, options)
    trained = train(parts, options)
    predicted = predict_times(trained.network, parts.test)
    found = evaluate_predictions(parts.test, predicted).evaluation
    metadata = describe(trained, parts.train, dataset, hardware, found)
    save_model(tmp_path / "m.pt", trained.network.state_dict(), metadata)
    model = load_model(tmp_path / "m.pt")
    assert model.metadata.dataset_digest == dataset.digest
    assert (model.metadata.torch, model.metadata.triton) == (["2.11.0"], ["3.6.0"])
    assert "mm/bfloat16" in model.metadata.covers
    assert model.metadata.scores["all"]["regret@1"] == round(found.model["all"][0].geomean, 5)

    row = int(np.flatnonzero(~parts.test.is_aten)[0])
    timing = dataset[int(parts.test.rows[row])]
    assert model.supports(timing.problem, hardware) is None
    from torch_diode.types.candidate_arrays import Candidates

    times, _ = model.predict_us(timing.problem, Candidates.of([timing.candidate]), hardware)
    assert np.allclose(times, predicted[row], rtol=1e-3)


def test_the_card_is_json_with_scores_and_noise(dataset, table, hardware):
    options = TrainingOptions(shape={"hidden": 8}, epochs=1, aten_epochs=1, kind="base")
    parts = split_table(table, options)
    trained = train(parts, options)
    floor = dataset_noise_floor(parts.test, dataset)
    predicted = predict_times(trained.network, parts.test)
    found = evaluate_predictions(parts.test, predicted, noise=floor).evaluation
    text = json.dumps(card(describe(trained, parts.train, dataset, hardware, found), found))
    data = json.loads(text)
    assert data["held_out"]["model"]["all"][0]["k"] == 1
    noise = data["held_out"]["noise"]
    assert noise[0] >= noise[-1] >= 1
