"""First runs of micro-kernels, in real processes."""

import pytest

from torch_diode.integration.cpu import trial
from torch_diode.types.candidate import CppGEMMConfig

CONFIG, OTHER = CppGEMMConfig(4, 32), CppGEMMConfig(6, 32)


@pytest.fixture(autouse=True)
def untried(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "_folder", lambda: tmp_path)
    monkeypatch.setattr(trial, "_failed", [])


def test_a_micro_kernel_that_runs_is_tried_once(monkeypatch):
    assert trial.fault_of(CONFIG) == ""
    monkeypatch.setattr(trial, "_CODE", "raise SystemExit(3)")
    assert trial.fault_of(CONFIG) == ""
    assert trial.known_fault() == ""


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "died of SIGILL"),
        (f"raise SystemExit({trial.WRONG})", "gave a wrong result"),
    ],
)
def test_where_one_dies_none_is_trusted(code, fault, monkeypatch):
    monkeypatch.setattr(trial, "_CODE", code)
    assert trial.fault_of(CONFIG) == f"{CONFIG} {fault}"
    assert trial.known_fault() == f"{CONFIG} {fault}"


def test_a_trial_that_could_not_be_made_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "_CODE", "raise OSError('disk full')")
    assert "disk full" in trial.fault_of(OTHER)
    assert list(tmp_path.iterdir()) == []


def test_before_the_first_trial_no_fault_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "_folder", lambda: tmp_path / "none yet")
    assert trial.known_fault() == ""
