"""A loaded model states its limits and its differences from this machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

import torch_diode
from torch_diode import ModelHeuristic, ModelWrapper
from torch_diode.hardware import known
from torch_diode.model.checkpoint import load_model, save_model
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError, InvalidValueError
from torch_diode.types.problem import MMShape

from .test_checkpoint import METADATA, PROBLEM, known_other, network, rewritten


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pt"


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (PROBLEM, None),
        (MMShape("addmm", M=8, N=8, K=8), "not trained on addmm"),
        (MMShape("mm", M=8, N=8, K=8, dtype="float16"), "float16"),
        (MMShape("mm", M=8, N=8, K=100_000), "far beyond"),
    ],
)
def test_a_model_knows_its_limits(path, h200, problem, reason):
    save_model(path, network().state_dict(), METADATA)
    answer = load_model(path).supports(problem, h200)
    assert answer is None if reason is None else reason in answer


def test_a_model_is_loaded_by_its_path_and_predicts(path, h200):
    save_model(path, network().state_dict(), METADATA)
    for model in (ModelWrapper(path), ModelWrapper.load(str(path)), torch_diode.load_model(path)):
        assert model.metadata == METADATA
    predictions = model.predict(PROBLEM)
    named = ModelHeuristic(model, "model nvidia-h200")
    ranked = torch_diode.rank(PROBLEM, None, h200, named)
    assert [p.predicted_us for p in predictions] == [p.predicted_us for p in ranked]
    first, second = predictions[:2]
    assert model.predict(PROBLEM, [second.candidate, first.candidate], h200)[0] == first
    with pytest.raises(EmptySelectionError, match="not trained on bmm"):
        model.predict(MMShape("bmm", 8, 8, 8, B=2))
    with pytest.raises(InvalidValueError, match="ModelWrapper: got 5; expected a model file"):
        ModelWrapper(5)


def test_another_chip_family_is_refused_and_a_relative_noted(path, h200):
    save_model(path, network().state_dict(), METADATA)
    model = load_model(path)
    other = known_other()
    assert "sm_90" in model.supports(PROBLEM, other)
    with pytest.raises(HardwareMismatchError, match="sm_90"):
        model.require(other)
    model.require(known("nvidia-h100"))
    assert model.notes(known("nvidia-h100"), "2.11.1+cu130", "3.6.0") == [
        "model of nvidia-h200 used on nvidia-h100"
    ]
    assert len(model.notes(h200, "2.13.0", "3.7.0")) == 2


def test_a_template_that_changed_since_training_is_noted(path, h200):
    hashes = ["triton::bmm=ab", "triton::mm=cd"]
    save_model(path, network().state_dict(), replace(METADATA, template_hashes=hashes))
    model = load_model(path)
    now = {"triton::mm": "cd", "triton::bmm": "ef", "triton::new": "01"}
    assert model.notes(h200, "2.11.0", "3.6.0", now) == [
        "template changed since the model was trained: triton::bmm"
    ]
    assert model.notes(h200, "2.11.0", "3.6.0", {**now, "triton::bmm": "ab"}) == []
    assert model.notes(h200, "2.11.0", "3.6.0") == []


@pytest.mark.parametrize(
    ("options", "open_sizes"),
    [({}, True), ({"methods": ["feedback", "sweep"]}, True), ({"methods": ["feedback"]}, False)],
)
def test_a_model_knows_if_its_kernels_took_sizes_as_arguments(tmp_path, options, open_sizes):
    assert load_model(rewritten(tmp_path / "m.pt", options=options)).open_sizes == open_sizes
