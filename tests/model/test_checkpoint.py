"""Model files round-trip, and nothing but a model is accepted."""

import io
import json
import os
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from torch_diode.candidates.space import candidate_space
from torch_diode.hardware import known, known_names
from torch_diode.model.checkpoint import load_model, load_network, read_tensors, save_model
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.networks.timing_models import build_network
from torch_diode.types.errors import DiodeError, FileFaultError
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
    decides_alone=["nvidia-h200"],
)
PROBLEM = MMShape("mm", M=128, N=256, K=512)


def known_other():
    """A chip of another family than the model's."""
    return next(chip for chip in map(known, known_names()) if chip.arch != "sm_90")


def network(seed=0):
    torch.manual_seed(seed)
    return build_network("deep", SHAPE)


@pytest.fixture(params=[".pt", ".safetensors"])
def path(request, tmp_path):
    return tmp_path / f"model{request.param}"


def rewritten(path, without=(), **changes):
    """A file with changed metadata."""
    data = json.loads(METADATA.to_json()) | changes
    data = {name: value for name, value in data.items() if name not in without}
    weights = network().state_dict()
    torch.save({"torch_diode": json.dumps(data), "weights": weights}, path)
    return path


def test_a_model_round_trips_and_is_read_as_a_network(path, h200):
    given = network(3)
    save_model(path, given.state_dict(), METADATA)
    model = load_model(path)
    assert model.metadata == METADATA
    times, sigma = model.predict_us(PROBLEM, candidate_space(PROBLEM, h200), h200)
    assert (times > 0).all()
    assert ((sigma > 0) & (sigma < 2)).all()
    metadata, read = load_network(path)
    assert (metadata, read.training) == (METADATA, False)
    for name, value in given.state_dict().items():
        assert torch.equal(value, read.state_dict()[name]), name


def test_both_forms_are_the_same_model(tmp_path):
    for suffix in (".pt", ".safetensors"):
        save_model(tmp_path / f"m{suffix}", network().state_dict(), METADATA)
    first, second = (load_model(tmp_path / f"m{suffix}") for suffix in (".pt", ".safetensors"))
    assert first.fingerprint() == second.fingerprint()


def test_weights_keep_their_older_names_in_files(tmp_path):
    save_model(tmp_path / "m.pt", network().state_dict(), METADATA)
    names = {name.partition(".")[0] for name in read_tensors(tmp_path / "m.pt")["weights"]}
    assert {"setters", "glance_out", "doubt"} <= names


def test_other_weights_have_another_fingerprint(path):
    save_model(path, network(0).state_dict(), METADATA)
    first = load_model(path).fingerprint()
    save_model(path, network(1).state_dict(), METADATA)
    assert load_model(path).fingerprint() != first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature_names": ["a"]}, "other features"),
        ({"format_version": 7}, "model format 7"),
        ({"format": "something"}, "no torch-diode model"),
        ({"kind": "transformer"}, "transformer"),
        ({"shape": {"hidden": 10**9}}, "shape"),
        ({"shape": {**SHAPE, "hidden": 16}}, "do not fit"),
        ({"ranges": {"M": ["x", 1]}}, "range"),
        ({"options": {"methods": [5]}}, "methods"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(tmp_path, changes, message):
    with pytest.raises(FileFaultError, match=message):
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


def test_weights_that_are_not_finite_are_refused(path):
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


def test_a_file_that_does_not_state_its_heads_shape_has_the_oldest(tmp_path, h200):
    torch.manual_seed(0)
    given = build_network("deep", SHAPE | {"aten_layers": 2, "aten_members": 6})
    data = json.loads(METADATA.to_json())
    data["shape"] = {n: v for n, v in SHAPE.items() if n not in ("aten_layers", "aten_members")}
    path = tmp_path / "m.pt"
    torch.save({"torch_diode": json.dumps(data), "weights": given.state_dict()}, path)
    metadata, read = load_network(path)
    assert len(read.aten.weights) == 3
    assert metadata.shape == given.shape
    assert load_model(path).predict_us(PROBLEM, candidate_space(PROBLEM, h200), h200)


@pytest.mark.parametrize(
    "shape", [{"hidden": 4096, "layers": 4096}, {"encoder": 4096}, {"aten_layers": 4096}]
)
def test_a_small_file_cannot_have_a_huge_network_built(tmp_path, shape):
    """4096 layers of 4096 would be 275 GB."""
    path = rewritten(tmp_path / "m.pt", shape=SHAPE | shape)
    with pytest.raises(FileFaultError, match="do not fit a deep network"):
        load_model(path)


def test_a_flipped_bit_among_the_weights_is_found(tmp_path):
    path = tmp_path / "model.pt"
    save_model(path, network().state_dict(), METADATA)
    data = bytearray(path.read_bytes())
    place = data.index(network().state_dict()["config_in.weight"].numpy().tobytes())
    data[place + 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFaultError, match="got a damaged file"):
        load_model(path)


def test_files_that_are_no_models_are_refused_without_torchs_advice(tmp_path):
    more, bare = tmp_path / "more.pt", tmp_path / "bare.pt"
    torch.save({"weights": torch.nn.Linear(2, 2)}, more)
    bare.write_bytes(pickle.dumps([1, 2, 3]))
    for path, message in ((more, "more in it than tensors"), (bare, "no archive of torch's")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(FileFaultError, match=message) as caught:
                load_model(path)
        assert "weights_only" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_cpus_model_keeps_its_labels_and_threads(cpu_model, tmp_path, suffix):
    metadata, network = load_network(cpu_model)
    save_model(tmp_path / f"m{suffix}", network.state_dict(), metadata)
    again = load_model(tmp_path / f"m{suffix}")
    assert again.metadata == metadata
    assert again.fingerprint() == load_model(cpu_model).fingerprint()
    assert metadata.threads == [1, 2]
    assert "mm/float32/tn" in metadata.covers
    assert network.labels == tuple(metadata.labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ["aten"]}, "got 1 labels; expected 6, one per output"),
        ({"labels": ["aten"] * 6}, "expected distinct texts"),
        ({"features_version": 3}, "got features version 3; expected 1"),
        ({"shape": {"hidden": 32}}, "labels"),
        ({"shape": {"hidden": 4096, "members": 4096, "labels": 6}}, "expected more of them"),
    ],
)
def test_a_cpus_model_whose_metadata_do_not_fit_is_refused(cpu_model, tmp_path, change, message):
    metadata, network = load_network(cpu_model)
    data = {**json.loads(metadata.to_json()), **change}
    weights = dict(network.state_dict())
    torch.save({"torch_diode": json.dumps(data), "weights": weights}, tmp_path / "m.pt")
    with pytest.raises(FileFaultError, match=message):
        load_model(tmp_path / "m.pt")
