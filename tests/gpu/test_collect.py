"""The collecting commands on a real GPU, as a person runs them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import read_shapes, write_shapes
from torch_diode.hardware import detect
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet

FEW = ("--min-size", "64", "--max-size", "512", "--power-of-two", "--operations", "mm")
DEFAULT = ("--search-space", "DEFAULT", *FEW)


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch_diode", *arguments]


def run(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        program(*arguments),
        cwd=cwd,
        env={**os.environ, "TORCH_DIODE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def test_the_tutorials_first_line_with_small_numbers(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        *("--format", "msgpack", "--seed", "42", "collect", "--output", "tutorial_dataset.msgpack"),
        *("--num-shapes", "2", "--search-space", "EXHAUSTIVE", "--search-mode", "max-autotune"),
        *("--log-normal", "--max-size", "64"),
    )
    dataset = read_dataset(tmp_path / "tutorial_dataset.msgpack")
    assert [p.name for p in tmp_path.iterdir()] == ["tutorial_dataset.msgpack"]
    assert len(dataset.problems) == 2
    assert len(dataset) > 100
    assert dataset.texts("hardware") == [detect().name]
    assert dataset.texts("method") == ["sweep"]
    assert np.isfinite(dataset.values("time_us")).mean() > 0.9
    assert f"Hardware: {detect().name}" in ended.stdout


def test_the_default_list_is_timed_and_validation_shares_nothing(tmp_path: Path) -> None:
    run(tmp_path, "collect", "--output", "train.parquet", "--num-shapes", "4", *DEFAULT)
    run(tmp_path, "create-validation", "--output", "v.parquet", "--num-shapes", "3", *DEFAULT)
    train, validation = (read_dataset(tmp_path / f"{name}.parquet") for name in ("train", "v"))
    assert (len(train.problems), len(validation.problems)) == (4, 3)
    assert 15 * 4 <= len(train) <= 40 * 4
    assert not {t.problem for t in train} & {t.problem for t in validation}
    assert set(train.texts("template")) >= {"aten", "triton::mm"}


def test_after_a_kill_the_same_command_continues(tmp_path: Path) -> None:
    command = ("collect", "--output", "t.parquet", "--num-shapes", "40", *DEFAULT)
    with subprocess.Popen(
        program(*command), cwd=tmp_path, env={**os.environ, "TORCH_DIODE": "0"}
    ) as first:
        parts = tmp_path / "t.parquet.parts"
        for _ in range(2000):
            if sum(file.stat().st_size for file in parts.glob(".journal-*")) > 20_000:
                break
            time.sleep(0.1)
        first.kill()
    assert not (tmp_path / "t.parquet").exists()
    ended = run(tmp_path, *command)
    assert " problems are done" in ended.stdout
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset.problems) == 40


def test_inductors_autotuning_can_be_collected_from(tmp_path: Path) -> None:
    problem = MMShape("mm", 256, 512, 256, transpose_b=True)
    write_shapes(OperationShapeSet.of([problem]), tmp_path / "shapes.json")
    run(
        tmp_path,
        *("collect-shapeset", "--shapeset", "shapes.json", "--output", "f.parquet"),
        *("--search-space", "DEFAULT", "--method", "feedback"),
    )
    dataset = read_dataset(tmp_path / "f.parquet")
    assert {timing.problem for timing in dataset} == {problem}
    assert dataset.texts("method") == ["feedback-clean"]
    assert len(dataset) > 10


def test_a_program_on_the_gpu_is_traced_backward_included(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import torch\n"
        "layer = torch.compile(torch.nn.Linear(128, 256, device='cuda', dtype=torch.bfloat16))\n"
        "x = torch.randn(64, 128, device='cuda', dtype=torch.bfloat16, requires_grad=True)\n"
        "layer(x).sum().backward()\n"
    )
    run(tmp_path, "trace", "--output", "shapes.json", "program.py")
    sizes = {(p.M, p.N, p.K) for p in read_shapes(tmp_path / "shapes.json").problems}
    assert {(64, 256, 128), (64, 128, 256), (256, 128, 64)} <= sizes
