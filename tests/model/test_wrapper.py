"""A loaded model states its limits and its differences from this machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

import torch_diode
from torch_diode import ModelWrapper
from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.model.checkpoint import load_model, save_model
from torch_diode.model.registry import shipped_model
from torch_diode.types.errors import (
    EmptySelectionError,
    FileFaultError,
    HardwareMismatchError,
    InvalidValueError,
)
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


def test_triton_is_asked_for_on_a_gpu_alone(path, h200):
    save_model(path, network().state_dict(), METADATA)
    (note,) = load_model(path).notes(h200, "2.11.0", triton="")
    assert note.endswith("which is not installed here")
    zen = replace(known("amd-zen5"), threads=2)
    assert shipped_model(zen).load().notes(zen, "2.13.0", triton="") == []


def test_a_template_that_changed_since_training_is_noted(path, h200):
    hashes = ["triton::bmm=ab", "triton::mm=cd"]
    save_model(path, network().state_dict(), replace(METADATA, template_hashes=hashes))
    model = load_model(path)
    now = {"triton::mm": "cd", "triton::bmm": "ef", "triton::new": "01"}
    (note,) = model.notes(h200, "2.11.0", "3.6.0", now)
    assert note.startswith("template changed since the model was trained: triton::bmm; ")
    assert "torch-diode tune" in note
    assert model.notes(h200, "2.11.0", "3.6.0", {**now, "triton::bmm": "ab"}) == []
    assert model.notes(h200, "2.11.0", "3.6.0") == []


@pytest.mark.parametrize(
    ("options", "open_sizes"),
    [({}, True), ({"methods": ["feedback", "sweep"]}, True), ({"methods": ["feedback"]}, False)],
)
def test_a_model_knows_if_its_kernels_took_sizes_as_arguments(tmp_path, options, open_sizes):
    assert load_model(rewritten(tmp_path / "m.pt", options=options)).open_sizes == open_sizes


def test_a_model_decides_alone_where_its_metadata_says_and_shortlists_elsewhere(tmp_path, h200):
    path = tmp_path / "m.pt"
    for alone, on_h200, on_h100 in (
        (["nvidia-h200"], "", "not validated on nvidia-h100"),
        ([], "have not shown", "not validated on nvidia-h100"),
        (["nvidia-h100", "nvidia-h200"], "", ""),
    ):
        model = load_model(rewritten(path, decides_alone=alone))
        for chip, expected in ((h200, on_h200), (known("nvidia-h100"), on_h100)):
            reason = model.why_shortlists(chip)
            assert expected in reason
            assert bool(expected) == bool(reason)
            ranking = ModelHeuristic(model).rank(PROBLEM, candidate_space(PROBLEM, chip), chip)
            assert ranking.shortlist == reason


def test_a_file_that_does_not_state_it_decides_alone_on_its_own_hardware(tmp_path, h200):
    model = load_model(rewritten(tmp_path / "m.pt", without=("decides_alone", "configs")))
    assert model.metadata.decides_alone == ["nvidia-h200"]
    assert model.known(candidate_space(PROBLEM, h200)) is None


def test_a_model_of_a_short_list_ranks_its_configs_and_aten_alone(tmp_path, h200):
    configs = {"triton::mm": [[64, 64, 32, 3, 4], [128, 64, 64, 4, 8]]}
    model = load_model(rewritten(tmp_path / "m.pt", configs=configs))
    space = candidate_space(PROBLEM, h200)
    ranking = ModelHeuristic(model).rank(PROBLEM, space, h200)
    assert sorted(str(space[int(row)]) for row in ranking.order) == [
        "aten",
        "triton::mm 128x64x64 g8 s4 w8",
        "triton::mm 64x64x32 g8 s3 w4",
    ]


@pytest.mark.parametrize("configs", [{"triton::mm": [[64, 64, 32]]}, {"triton::mm": "all"}, []])
def test_faulty_configs_are_refused(tmp_path, configs):
    with pytest.raises(FileFaultError, match="configs"):
        load_model(rewritten(tmp_path / "m.pt", configs=configs))
