import json
import shutil

import pytest

from tests.cli.program import inside, told_off


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    """A user's own folder with one model in it."""
    place = tmp_path / "matmul" / "nvidia-h200"
    shutil.copytree(trained.parent, place)
    monkeypatch.setenv("TORCH_DIODE_MODEL_PATH", str(tmp_path))
    return place


def test_the_users_models_and_the_shipped_ones_are_listed(folder):
    ended = inside("models")
    assert ended.code == 0, ended.err
    names = [line.split()[2] for line in ended.out.splitlines() if line.startswith("matmul ")]
    assert names[0] == "quick"
    assert "matmul" in names
    assert str(folder / "quick.pt") in ended.out


def test_as_data_with_hash_and_card(folder):
    entries = json.loads(inside("models", "--json").out)["models"]
    assert entries[0]["name"] == "quick"
    assert len(entries[0]["sha256"]) == 64
    assert entries[0]["card"]["held_out"]["model"]["all"]


def test_a_card_is_shown(folder):
    assert inside("models", "--card", "quick").out.startswith("# Model `quick` for nvidia-h200")
    (folder / "quick.md").unlink()
    assert json.loads(inside("models", "--card", "quick").out)["hardware"] == "nvidia-h200"
    (folder / "quick.json").unlink()
    assert "write one with validate-model" in told_off("models", "--card", "quick")


def test_none_is_a_sentence(folder):
    assert "got no model for nvidia-b200" in told_off("models", "--hardware", "nvidia-b200")
    assert "got no model nothing" in told_off("models", "--card", "nothing")
