"""The command; tests/toolkit/training has the function."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.cli.program import inside, told_off
from tests.conftest import QUICK_TRAINING as QUICK
from tests.files.test_earlier_release import EARLIER


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Curves go to `logs` where the command runs."""
    monkeypatch.chdir(tmp_path)


def arguments(timings, model, *more):
    files = ("--dataset", timings / "train.parquet", "--model", model)
    return ("--seed", "1", "train", *files, "--log-dir", model.parent / "logs", *more)


def test_it_prints_the_data_the_epochs_and_the_scores(timings, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/m-history.csv").write_text("of an earlier training")
    ended = inside(*arguments(timings, tmp_path / "m.pt", *QUICK))
    assert ended.code == 0, ended.err
    assert "problems to train on" in ended.out
    assert "Training: 3 of 3 epochs, loss" in ended.out
    assert "ATen alone" in ended.out
    assert "Scores are of" in ended.out
    assert f"Curves in {tmp_path / 'logs/m-2-history.csv'} and" in ended.out
    assert (tmp_path / "logs/m-history.csv").read_text() == "of an earlier training"
    assert ended.out.rstrip().endswith("card in m.json and m.md")


def test_datasets_of_the_earlier_release_are_found_in_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for form in ("json", "msgpack"):
        (tmp_path / "data" / form).mkdir(parents=True)
        shutil.copy(EARLIER / f"dataset.{form}", tmp_path / "data" / form / f"d.{form}")
    (tmp_path / "data/json/note.json").write_text("{}")
    ended = inside("train", "--data-dir", "data", "--op-name", "mm", *QUICK)
    assert ended.code == 0, ended.err
    assert f"{Path('data')}: read json/d.json, msgpack/d.msgpack" in ended.out
    assert "20 timings of 4 problems on nvidia-h200" in ended.out
    assert Path("matmul_model.pt").is_file()
    assert Path("logs/matmul_model-history.csv").is_file()


def epochs_in(state: Path) -> int:
    return int(torch.load(state, weights_only=True)["epoch"]) if state.exists() else 0


def test_a_killed_run_continues(timings, tmp_path):
    """That it ends the same is tested in tests/toolkit/training."""
    options = ("--num-epochs", "30", "--hidden-dim", "16", "--num-layers", "1")
    command = [sys.executable, "-m", "torch_diode"]
    command += map(str, arguments(timings, tmp_path / "m.pt", *options))
    state = tmp_path / "m.pt.state"
    with subprocess.Popen(
        command,
        env={**os.environ, "TORCH_DIODE": "0", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    ) as run:
        deadline = time.monotonic() + 200
        while epochs_in(state) < 3 and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
    assert state.exists()
    assert not (tmp_path / "m.pt").exists()
    ended = inside(*arguments(timings, tmp_path / "m.pt", *options))
    assert ended.code == 0, ended.err
    assert "continuing from it" in ended.out
    assert "Training: 3 of 30" not in ended.out
    assert not state.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "matmul_dataset.parquet: no such file"),
        (("--dataset", "a", "--data-dir", "b"), "got both of --dataset and --data-dir"),
        (("--dataset", "nowhere.parquet", "--model-type", "huge"), "expected one of base, deep"),
        (("--data-dir", ".", "--file-extensions", "csv"), "file-extensions"),
    ],
)
def test_a_fault_is_one_sentence(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in told_off("train", "--model", "m.pt", *given)


def test_a_model_worse_than_aten_is_not_written_and_exits_with_1(timings, tmp_path):
    """One epoch of a tiny network with hardly any learning rate."""
    bad = ("--num-epochs", "1", "--hidden-dim", "2", "--learning-rate", "0.0000001")
    more = (*bad, "--must-beat-aten", "--log-dir", tmp_path)
    ended = inside(*arguments(timings, tmp_path / "m.pt", *more))
    assert ended.code == 1
    assert "m.pt: not written, ATen alone is better in" in ended.out
    assert not (tmp_path / "m.pt").exists()
