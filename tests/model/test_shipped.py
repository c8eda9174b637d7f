"""What `shipped` means, everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_diode.hardware import known
from torch_diode.model.registry import ModelRegistry, shipped_folders
from torch_diode.model.registry import SHIPPED, model_file, shipped_model
from torch_diode.types.errors import EmptySelectionError

from .test_checkpoint import known_other
from .test_registry import put

H200 = known("nvidia-h200")


def test_it_is_the_packages_own_whatever_the_users_folders_hold(tmp_path, monkeypatch):
    mine = put(tmp_path)
    monkeypatch.setenv("TORCH_DIODE_MODEL_PATH", str(tmp_path))
    assert ModelRegistry().find("matmul", H200).path == mine
    found = shipped_model(H200)
    assert found.path == model_file(SHIPPED, H200)
    assert any(found.path.is_relative_to(folder) for folder in shipped_folders())


def test_any_other_word_is_a_file():
    assert model_file("mine.pt", H200) == Path("mine.pt")


def test_a_chip_that_none_came_for_is_one_sentence():
    with pytest.raises(EmptySelectionError, match="none came along for"):
        model_file(SHIPPED, known_other())
