from __future__ import annotations

import os

import pytest

from torch_diode.collection.kernels.compile import use_inductors_ptxas

SWITCH = "TRITON_PTXAS_PATH"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(SWITCH, "")  # put back afterwards, whatever happens to it
    monkeypatch.delenv(SWITCH)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ptxas").touch(0o755)
    return tmp_path


def test_the_one_that_torch_brings_is_used(folder):
    use_inductors_ptxas(folder)
    assert os.environ[SWITCH] == str(folder / "bin/ptxas")


def test_what_the_user_has_set_stays(folder, monkeypatch):
    monkeypatch.setenv(SWITCH, "mine")
    use_inductors_ptxas(folder)
    assert os.environ[SWITCH] == "mine"


def test_where_torch_brings_none_nothing_is_set(folder):
    (folder / "bin/ptxas").unlink()
    use_inductors_ptxas(folder)
    assert SWITCH not in os.environ
    (folder / "bin/ptxas").touch(0o644)
    use_inductors_ptxas(folder)
    assert SWITCH not in os.environ
