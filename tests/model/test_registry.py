"""The registry finds the model of a hardware; `shipped` is the package's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.files.test_earlier_release import EARLIER
from torch_diode.hardware import find, known
from torch_diode.model import registry as registry_module
from torch_diode.model.checkpoint import load_model, save_model
from torch_diode.model.registry import (
    PURPOSE,
    SHIPPED,
    ModelPointer,
    ModelRegistry,
    load_registered,
    model_file,
    register_model,
    shipped_folders,
    shipped_model,
)
from torch_diode.types.errors import DiodeError, EmptySelectionError, FileFaultError
from torch_diode.types.hardware import Hardware

from .test_checkpoint import METADATA, known_other, network, rewritten


def put(folder, hardware="nvidia-h200", name="m", suffix=".pt", heuristic="matmul"):
    path = folder / heuristic / hardware / f"{name}{suffix}"
    save_model(path, network().state_dict(), METADATA)
    return path


def test_a_chips_own_model_comes_before_a_relatives(tmp_path):
    path = put(tmp_path)
    registry = ModelRegistry([tmp_path])
    for name in ("nvidia-h200", "nvidia-h100"):
        assert registry.find("matmul", known(name)).path == path
    assert registry.find("matmul", known_other()) is None
    assert registry.find("attention", known("nvidia-h200")) is None
    assert registry.find("matmul", known("nvidia-h200")).load().metadata == METADATA


def test_the_users_folders_come_first(tmp_path, monkeypatch):
    first, second = put(tmp_path / "a"), put(tmp_path / "b")
    monkeypatch.setenv("TORCH_DIODE_MODEL_PATH", f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    assert ModelRegistry().find("matmul", known("nvidia-h200")).path == first
    monkeypatch.setenv("TORCH_DIODE_MODEL_PATH", f"{tmp_path / 'b'}:{tmp_path / 'a'}")
    assert ModelRegistry().find("matmul", known("nvidia-h200")).path == second


def test_a_name_is_no_path(tmp_path):
    save_model(tmp_path / "secret.pt", network().state_dict(), METADATA)
    models = tmp_path / "models"
    put(models)
    registry, h200 = ModelRegistry([models]), known("nvidia-h200")
    for name in ("../secret", "../../../secret", str(tmp_path / "secret"), "../../matmul/m", "*"):
        assert registry.find("matmul", h200, name) is None
        assert registry.find(name, h200) is None
        with pytest.raises(EmptySelectionError, match="got no"):
            load_registered(name, "nvidia-h200")
        with pytest.raises(DiodeError, match="expected"):
            load_registered("matmul", name)


def test_a_model_cannot_name_a_path_as_its_hardware(tmp_path):
    path = put(tmp_path)
    rewritten(path, hardware="../../elsewhere")
    with pytest.raises(FileFaultError, match="hardware"):
        load_model(path)


def test_a_model_can_be_selected_by_name(tmp_path):
    put(tmp_path, name="a")
    wanted = put(tmp_path, name="b", suffix=".safetensors")
    assert ModelRegistry([tmp_path]).find("matmul", known("nvidia-h200"), "b").path == wanted


def test_models_anywhere_in_a_folder_are_found_by_their_metadata(tmp_path):
    for name in ("loose", "purpose/v1_model"):
        save_model(tmp_path / f"{name}.pt", network().state_dict(), METADATA)
    (tmp_path / "purpose/broken.pt").write_bytes(b"no model")
    shutil.copy(EARLIER / "base_model.pt", tmp_path / "earlier.pt")
    registry = ModelRegistry([tmp_path])
    found = [(p.purpose, p.hardware, p.name) for p in registry.pointers("matmul")]
    assert found == [(PURPOSE, "nvidia-h200", "loose"), ("purpose", "nvidia-h200", "v1_model")]
    reasons = {path.name: reason for path, reason in registry.unusable().items()}
    assert "no archive of torch's" in reasons["broken.pt"]
    assert reasons["earlier.pt"].startswith("got a model of torch-diode 0.1.1")
    assert len(registry.manifest()["unusable"]) == 2


def test_a_model_registered_by_hand_comes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(registry_module, "_by_hand", [])
    path = tmp_path / "mine.pt"
    save_model(path, network().state_dict(), METADATA)
    pointer = register_model(path)
    assert ModelRegistry().find("matmul", known("nvidia-h200")) == pointer
    assert ModelRegistry([tmp_path / "none"]).pointers() == []
    assert (pointer.name, pointer.hardware, pointer.interface) == (
        "mine",
        "nvidia-h200",
        "torch._inductor.choices",
    )
    assert pointer.exists()
    assert pointer.size == path.stat().st_size
    assert pointer.version == f"1.{METADATA.features_version}"
    own = ModelRegistry([tmp_path / "none"])
    assert own.register(path) == own.pointers()[0] == pointer
    with pytest.raises(FileFaultError, match=r"missing\.pt: no such file"):
        own.register(tmp_path / "missing.pt")


def test_files_that_are_no_models_are_ignored(tmp_path):
    put(tmp_path)
    for name in ("notes.txt", ".m.pt.tmp", "m.json"):
        (tmp_path / "matmul/nvidia-h200" / name).write_text("{}")
    assert len(ModelRegistry([tmp_path, tmp_path / "missing"]).pointers()) == 1


def test_the_manifest_lists_models_with_hash_and_card(tmp_path):
    path = put(tmp_path)
    path.with_suffix(".json").write_text('{"regret": 1.02}')
    (entry,) = json.loads(json.dumps(ModelRegistry([tmp_path]).manifest()))["models"]
    assert entry["bytes"] == path.stat().st_size
    assert len(entry["sha256"]) == 64
    assert entry["card"] == {"regret": 1.02}


def test_a_model_in_another_hardwares_folder_is_refused(tmp_path):
    with pytest.raises(FileFaultError, match="nvidia-h100"):
        ModelPointer("matmul", "nvidia-h100", "model", put(tmp_path)).load()


def test_shipped_is_the_packages_own_model_whatever_the_users_folders_hold(
    tmp_path, monkeypatch, h200
):
    mine = put(tmp_path)
    monkeypatch.setenv("TORCH_DIODE_MODEL_PATH", str(tmp_path))
    assert ModelRegistry().find("matmul", h200).path == mine
    path = shipped_model(h200).path
    assert path == model_file(SHIPPED, h200)
    assert any(path.is_relative_to(folder) for folder in shipped_folders())
    assert model_file("mine.pt", h200) == Path("mine.pt")


def test_a_chip_without_a_shipped_model_is_one_sentence():
    with pytest.raises(EmptySelectionError, match="none came along for"):
        model_file(SHIPPED, known_other())


@pytest.mark.parametrize("pointer", ModelRegistry(shipped_folders()).pointers(), ids=str)
def test_every_shipped_model_loads_and_is_small(pointer):
    pointer.load().require(known(pointer.hardware))
    assert pointer.path.stat().st_size <= 2 * 2**20
    assert pointer.card_path.is_file()


def test_a_cpus_model_serves_its_threads_only(cpu_model):
    registry = ModelRegistry([cpu_model.parents[2]])
    assert registry.find("matmul", find("amd-zen5", 2)).path == cpu_model
    assert registry.find("matmul", find("amd-zen5", 64)) is None
    assert registry.find("matmul", known("amd-zen5")).path == cpu_model
    assert registry.find("matmul", Hardware("amd-zen4", "cpu", "x86_64", threads=2)) is None
