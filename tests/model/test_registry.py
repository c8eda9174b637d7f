"""Which model serves which hardware."""

from __future__ import annotations

import json

import pytest

from torch_diode.hardware import known
from torch_diode.model.checkpoint import save_model
from torch_diode.model.registry import ModelRegistry, shipped_folders

from .test_checkpoint import METADATA, known_other, network


def put(folder, hardware="nvidia-h200", name="m", suffix=".pt", heuristic="matmul"):
    path = folder / heuristic / hardware / f"{name}{suffix}"
    save_model(path, network().state_dict(), METADATA)
    return path


def test_the_chips_own_model_then_a_relatives(tmp_path):
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


def test_a_model_can_be_asked_for_by_name(tmp_path):
    put(tmp_path, name="a")
    wanted = put(tmp_path, name="b", suffix=".safetensors")
    found = ModelRegistry([tmp_path]).find("matmul", known("nvidia-h200"), "b")
    assert found.path == wanted


def test_what_is_no_model_is_passed_over(tmp_path):
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


def test_the_checkouts_models_are_among_the_shipped():
    assert any(folder.name == "trained_models" for folder in shipped_folders())


@pytest.mark.parametrize("pointer", ModelRegistry(shipped_folders()).pointers(), ids=str)
def test_every_shipped_model_loads_and_is_small(pointer):
    pointer.load().require(known(pointer.hardware))
    assert pointer.path.stat().st_size <= 2 * 2**20
    assert pointer.card_path.is_file()
