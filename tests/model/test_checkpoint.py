"""Model files: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import io
import json
import os
import pickle
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from torch_diode.candidates.space import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.model.checkpoint import ModelPointer, load_model, load_network, save_model
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.networks.timing_models import build_network
from torch_diode.model.registry import load_registered
from torch_diode.types.errors import DiodeError, FileFaultError, HardwareMismatchError
from torch_diode.types.problem import MMShape

HEAD = {"aten_hidden": 4, "aten_layers": 3, "aten_members": 2}
SHAPE = {"hidden": 8, "layers": 2, **HEAD, "encoder": 8}
SIZES = {name: [1.0, 4096.0] for name in "MNKB"} | {"flops": [1.0, 1e12]}
METADATA = ModelMetadata(
    kind="deep",
    shape=SHAPE,
    hardware="nvidia-h200",
    arch="sm_90",
    covers=["mm/bfloat16"],
    ranges=SIZES,
    torch=["2.11.0"],
    triton=["3.6.0"],
    dataset_digest="0" * 64,
    sigma={"configs": 0.08, "aten": 0.1},
)
PROBLEM = MMShape("mm", M=128, N=256, K=512)


def network(seed=0):
    torch.manual_seed(seed)
    return build_network("deep", SHAPE)


@pytest.fixture(params=[".pt", ".safetensors"])
def path(request, tmp_path):
    return tmp_path / f"model{request.param}"


def rewritten(path, **changes):
    """A file whose metadata say something else."""
    data = json.loads(METADATA.to_json()) | changes
    weights = network().state_dict()
    torch.save({"torch_diode": json.dumps(data), "weights": weights}, path)
    return path


def test_a_model_comes_back_as_it_went(path, hardware):
    save_model(path, network().state_dict(), METADATA)
    model = load_model(path)
    assert model.metadata == METADATA
    space = candidate_space(PROBLEM, hardware)
    times, sigma = model.predict_us(PROBLEM, space, hardware)
    assert (times > 0).all()
    assert ((sigma > 0) & (sigma < 2)).all()
    ranking = ModelHeuristic(model).rank(PROBLEM, space, hardware)
    assert len(ranking.order) == len(space)


def test_both_forms_are_the_same_model(tmp_path):
    for suffix in (".pt", ".safetensors"):
        save_model(tmp_path / f"m{suffix}", network().state_dict(), METADATA)
    first, second = (load_model(tmp_path / f"m{suffix}") for suffix in (".pt", ".safetensors"))
    assert first.fingerprint() == second.fingerprint()


def test_other_weights_have_another_fingerprint(path):
    save_model(path, network(0).state_dict(), METADATA)
    first = load_model(path).fingerprint()
    save_model(path, network(1).state_dict(), METADATA)
    assert load_model(path).fingerprint() != first


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (PROBLEM, None),
        (MMShape("addmm", M=8, N=8, K=8), "not trained on addmm"),
        (MMShape("mm", M=8, N=8, K=8, dtype="float16"), "float16"),
        (MMShape("mm", M=8, N=8, K=100_000), "far beyond"),
    ],
)
def test_a_model_knows_its_limits(path, hardware, problem, reason):
    save_model(path, network().state_dict(), METADATA)
    said = load_model(path).supports(problem, hardware)
    assert said is None if reason is None else reason in said


def test_another_chip_family_is_refused_and_a_relative_noted(path):
    save_model(path, network().state_dict(), METADATA)
    model = load_model(path)
    stranger = known_other()
    assert "sm_90" in model.supports(PROBLEM, stranger)
    with pytest.raises(HardwareMismatchError, match="sm_90"):
        model.require(stranger)
    model.require(known("nvidia-h100"))
    assert model.notes(known("nvidia-h100"), "2.11.1+cu130", "3.6.0") == [
        "model of nvidia-h200 used on nvidia-h100"
    ]
    assert len(model.notes(known("nvidia-h200"), "2.13.0", "3.7.0")) == 2


def test_a_template_that_changed_since_training_is_noted(path):
    hashes = ["triton::bmm=ab", "triton::mm=cd"]
    save_model(path, network().state_dict(), replace(METADATA, template_hashes=hashes))
    model, h200 = load_model(path), known("nvidia-h200")
    now = {"triton::mm": "cd", "triton::bmm": "ef", "triton::new": "01"}
    assert model.notes(h200, "2.11.0", "3.6.0", now) == [
        "template changed since the model was trained: triton::bmm"
    ]
    assert model.notes(h200, "2.11.0", "3.6.0", {**now, "triton::bmm": "ab"}) == []
    assert model.notes(h200, "2.11.0", "3.6.0") == []


def test_the_shipped_model_says_which_templates_it_was_trained_on():
    metadata = load_registered("matmul", known("nvidia-h200")).metadata
    names = {text.partition("=")[0] for text in metadata.template_hashes}
    assert names == {"triton::mm", "triton::bmm", "triton::mm_persistent_tma"}


def known_other():
    from torch_diode.hardware import known_names

    return next(chip for chip in map(known, known_names()) if chip.arch != "sm_90")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"features_version": 999}, "features version 999"),
        ({"feature_names": ["a"]}, "other features"),
        ({"format_version": 7}, "model format 7"),
        ({"format": "something"}, "no torch-diode model"),
        ({"kind": "transformer"}, "transformer"),
        ({"shape": {"hidden": 10**9}}, "shape"),
        ({"shape": {**SHAPE, "hidden": 16}}, "do not fit"),
        ({"covers": "mm"}, "covers"),
        ({"ranges": {"M": ["x", 1]}}, "range"),
        ({"options": {"methods": 5}}, "methods"),
        ({"options": {"methods": [5]}}, "methods"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(tmp_path, changes, said):
    with pytest.raises(FileFaultError, match=said):
        load_model(rewritten(tmp_path / "m.pt", **changes))


class Hostile:
    def __reduce__(self):
        return os.system, ("touch /tmp/torch_diode_was_here",)


def test_code_in_a_model_file_does_not_run(tmp_path):
    marker = Path("/tmp/torch_diode_was_here")
    files = {
        "plain": pickle.dumps(Hostile(), protocol=2),
        "saved": _saved({"torch_diode": METADATA.to_json(), "weights": Hostile()}),
        "zip": _zip_with(pickle.dumps(Hostile(), protocol=2)),
        "state": _saved(network()),
    }
    for name, data in files.items():
        target = tmp_path / f"{name}.pt"
        target.write_bytes(data)
        with pytest.raises(FileFaultError):
            load_model(target)
        (tmp_path / f"{name}.safetensors").write_bytes(data)
        with pytest.raises(FileFaultError):
            load_model(tmp_path / f"{name}.safetensors")
    assert not marker.exists()


def _saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _zip_with(data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


def test_damaged_files_are_one_clear_error(path):
    save_model(path, network().state_dict(), METADATA)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for length in (0, 1, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFaultError, match=path.name):
            load_model(path)
    for _ in range(40):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 8):
            data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            load_model(path)
        except DiodeError:
            continue


def test_weights_that_are_no_numbers_are_refused(path):
    weights = network().state_dict()
    weights["out.bias"].fill_(float("nan"))
    save_model(path, weights, METADATA)
    with pytest.raises(FileFaultError, match=r"out\.bias"):
        load_model(path)


@pytest.mark.parametrize("name", ["missing.pt", "model.pkl", "folder.pt"])
def test_wrong_paths_are_refused(tmp_path, name):
    (tmp_path / "folder.pt").mkdir()
    with pytest.raises(FileFaultError, match=name):
        load_model(tmp_path / name)


def test_a_model_in_another_hardwares_folder_is_refused(path):
    save_model(path, network().state_dict(), METADATA)
    with pytest.raises(FileFaultError, match="nvidia-h100"):
        ModelPointer("matmul", "nvidia-h100", "model", path).load()


def test_a_model_comes_back_as_a_network(path):
    given = network(3)
    save_model(path, given.state_dict(), METADATA)
    metadata, found = load_network(path)
    assert metadata == METADATA
    assert not found.training
    for name, value in given.state_dict().items():
        assert torch.equal(value, found.state_dict()[name]), name


def test_a_file_that_does_not_say_how_deep_its_head_is_has_the_first_kind(tmp_path, hardware):
    torch.manual_seed(0)
    given = build_network("deep", SHAPE | {"aten_layers": 2, "aten_members": 6})
    data = json.loads(METADATA.to_json())
    data["shape"] = {n: v for n, v in SHAPE.items() if n not in ("aten_layers", "aten_members")}
    path = tmp_path / "m.pt"
    torch.save({"torch_diode": json.dumps(data), "weights": given.state_dict()}, path)
    metadata, found = load_network(path)
    assert len(found.aten.weights) == 3
    assert metadata.shape == given.shape
    assert load_model(path).predict_us(PROBLEM, candidate_space(PROBLEM, hardware), hardware)


@pytest.mark.parametrize(
    "shape",
    [
        {"hidden": 4096, "layers": 4096},
        {"encoder": 4096},
        {"aten_hidden": 4096},
        {"aten_layers": 4096},
        {"aten_members": 4096},
    ],
)
def test_a_file_cannot_have_a_network_built_that_it_does_not_hold(tmp_path, shape):
    """4096 layers of 4096 would be 275 GB."""
    path = rewritten(tmp_path / "m.pt", shape=SHAPE | shape)
    with pytest.raises(FileFaultError, match="do not fit a deep network"):
        load_model(path)


@pytest.mark.parametrize(
    ("options", "open_sizes"),
    [({}, True), ({"methods": ["feedback", "sweep"]}, True), ({"methods": ["feedback"]}, False)],
)
def test_a_model_knows_whether_its_kernels_had_open_sizes(tmp_path, options, open_sizes):
    assert load_model(rewritten(tmp_path / "m.pt", options=options)).open_sizes == open_sizes


def test_a_flipped_bit_among_the_weights_is_found(tmp_path):
    path = tmp_path / "model.pt"
    save_model(path, network().state_dict(), METADATA)
    data = bytearray(path.read_bytes())
    place = data.index(network().state_dict()["config_in.weight"].numpy().tobytes())
    data[place + 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFaultError, match="got a damaged file"):
        load_model(path)


def test_what_is_no_model_is_refused_in_words_of_ours(tmp_path):
    more, bare = tmp_path / "more.pt", tmp_path / "bare.pt"
    torch.save({"weights": torch.nn.Linear(2, 2)}, more)
    bare.write_bytes(pickle.dumps([1, 2, 3]))
    for path, said in ((more, "more in it than tensors"), (bare, "no archive of torch's")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(FileFaultError, match=said) as caught:
                load_model(path)
        assert "weights_only" not in str(caught.value)
