import sys
from pathlib import Path

import pytest

from torch_diode.files.user_data import user_data


def test_the_variable_decides(monkeypatch):
    monkeypatch.setenv("TORCH_DIODE_HOME", "~/kept")
    assert user_data() == Path.home() / "kept"


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", "data/torch-diode"),
        ("darwin", "home/Library/Application Support/torch-diode"),
        ("win32", "local/torch-diode"),
    ],
)
def test_else_it_is_the_platforms_place(platform, expected, tmp_path, monkeypatch):
    monkeypatch.delenv("TORCH_DIODE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr(sys, "platform", platform)
    assert user_data() == tmp_path / expected
