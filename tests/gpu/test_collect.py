"""The collecting commands on a real GPU."""

import subprocess
import sys
import time

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.gpu.programs import ENVIRONMENT, torch_diode
from torch_diode import MMShape, OperationShapeSet
from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import read_shapes, write_shapes
from torch_diode.hardware import detect

FEW = ("--min-size", "64", "--max-size", "512", "--power-of-two", "--operations", "mm")
DEFAULT = ("--search-space", "DEFAULT", *FEW)


def test_the_tutorials_collect_command_times_the_exhaustive_space(tmp_path):
    ended = torch_diode(
        *("--format", "msgpack", "--seed", "42", "collect", "--output", "tutorial_dataset.msgpack"),
        *("--num-shapes", "2", "--search-space", "EXHAUSTIVE", "--search-mode", "max-autotune"),
        *("--log-normal", "--max-size", "64"),
        cwd=tmp_path,
    )
    dataset = read_dataset(tmp_path / "tutorial_dataset.msgpack")
    assert [p.name for p in tmp_path.iterdir()] == ["tutorial_dataset.msgpack"]
    assert len(dataset.problems) == 2
    assert len(dataset) > 100
    assert dataset.texts("hardware") == [detect().name]
    assert dataset.texts("method") == ["sweep"]
    assert np.isfinite(dataset.values("time_us")).mean() > 0.9
    assert f"Hardware: {detect().name}" in ended.stdout


def test_the_default_list_is_timed_and_validation_shares_no_problem(tmp_path):
    for command, name, count in (("collect", "train", "4"), ("create-validation", "v", "3")):
        options = ("--output", f"{name}.parquet", "--num-shapes", count)
        torch_diode(command, *options, *DEFAULT, cwd=tmp_path)
    train, validation = (read_dataset(tmp_path / f"{name}.parquet") for name in ("train", "v"))
    assert (len(train.problems), len(validation.problems)) == (4, 3)
    assert 15 * 4 <= len(train) <= 40 * 4
    assert not {t.problem for t in train} & {t.problem for t in validation}
    assert set(train.texts("template")) >= {"aten", "triton::mm"}


def test_a_killed_collection_is_continued_by_the_same_command(tmp_path):
    command = ("collect", "--output", "t.parquet", "--num-shapes", "40", *DEFAULT)
    program = [sys.executable, "-m", "torch_diode", *command]
    with subprocess.Popen(program, cwd=tmp_path, env=ENVIRONMENT) as first:
        parts = tmp_path / "t.parquet.parts"
        for _ in range(2000):
            if sum(file.stat().st_size for file in parts.glob(".journal-*")) > 20_000:
                break
            time.sleep(0.1)
        first.kill()
    assert not (tmp_path / "t.parquet").exists()
    ended = torch_diode(*command, cwd=tmp_path)
    assert " problems are done" in ended.stdout
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset.problems) == 40


def test_feedback_collects_clean_timings_of_inductors_autotuning(tmp_path):
    problem = MMShape("mm", 256, 512, 256, transpose_b=True)
    write_shapes(OperationShapeSet.of([problem]), tmp_path / "shapes.json")
    torch_diode(
        *("collect-shapeset", "--shapeset", "shapes.json", "--output", "f.parquet"),
        *("--search-space", "DEFAULT", "--method", "feedback"),
        cwd=tmp_path,
    )
    dataset = read_dataset(tmp_path / "f.parquet")
    assert {timing.problem for timing in dataset} == {problem}
    assert dataset.texts("method") == ["feedback-clean"]
    assert len(dataset) > 10


def test_a_trace_includes_the_backward_pass(tmp_path):
    (tmp_path / "program.py").write_text(
        "import torch\n"
        "layer = torch.compile(torch.nn.Linear(128, 256, device='cuda', dtype=torch.bfloat16))\n"
        "x = torch.randn(64, 128, device='cuda', dtype=torch.bfloat16, requires_grad=True)\n"
        "layer(x).sum().backward()\n"
    )
    torch_diode("trace", "--output", "shapes.json", "program.py", cwd=tmp_path)
    sizes = {(p.M, p.N, p.K) for p in read_shapes(tmp_path / "shapes.json").problems}
    assert {(64, 256, 128), (64, 128, 256), (256, 128, 64)} <= sizes
