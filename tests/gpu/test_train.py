"""Networks trained side by side on one GPU, by processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from torch_diode.files.datasets import read_dataset, write_dataset

DATA = Path(__file__).parents[2] / "diode_datasets/matmul/nvidia-h200/train/sweep-7.parquet"


def test_all_of_them_use_the_gpu(tmp_path: Path) -> None:
    data = read_dataset(DATA)
    write_dataset(data.take(data.problems.ids < 400), tmp_path / "some.parquet")
    command = [sys.executable, "-m", "torch_diode", "--seed", "3", "--device", "cuda", "train"]
    options = ["--teachers", "2", "--num-epochs", "3", "--hidden-dim", "32"]
    ended = subprocess.run(
        [*command, "--dataset", "some.parquet", "--model", "m.pt", *options],
        cwd=tmp_path,
        env={**os.environ, "TORCH_DIODE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "3 networks, " in ended.stdout
    assert "side by side" in ended.stdout
    assert "stopped" not in ended.stdout, "each process could use the GPU"
    assert (tmp_path / "m.pt").exists()
    assert not [*tmp_path.glob("*.state"), *tmp_path.glob("*.teacher-*")]


def test_a_gpu_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch_diode", "--device", "cuda:77", "train"]
    ended = subprocess.run(
        [*command, "--dataset", str(DATA), "--model", str(tmp_path / "m.pt")],
        env={**os.environ, "TORCH_DIODE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "cuda:77" in ended.stderr
    assert "Traceback" not in ended.stderr
