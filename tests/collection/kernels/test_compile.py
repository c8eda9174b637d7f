import os

import pytest

from torch_diode.collection.kernels.compile import use_inductors_ptxas

VARIABLE = "TRITON_PTXAS_PATH"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "")  # restored afterwards
    monkeypatch.delenv(VARIABLE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ptxas").touch(0o755)
    return tmp_path


def test_the_ptxas_bundled_with_torch_is_used_unless_the_user_has_one(folder, monkeypatch):
    use_inductors_ptxas(folder)
    assert os.environ[VARIABLE] == str(folder / "bin/ptxas")
    monkeypatch.setenv(VARIABLE, "mine")
    use_inductors_ptxas(folder)
    assert os.environ[VARIABLE] == "mine"


def test_without_an_executable_ptxas_nothing_is_set(folder):
    (folder / "bin/ptxas").unlink()
    use_inductors_ptxas(folder)
    assert VARIABLE not in os.environ
    (folder / "bin/ptxas").touch(0o644)
    use_inductors_ptxas(folder)
    assert VARIABLE not in os.environ
