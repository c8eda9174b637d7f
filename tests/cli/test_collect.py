"""`collect` as a person runs it. On the CPU there is one candidate, ATen, and all the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.program import refusal, torch_diode
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import detect

CPU = ("--seed", "42", "--device", "cpu", "collect")
SMALL = ("--max-size", "64")
MANY = ("--output", "t.parquet", "--num-shapes", "60", "--max-size", "256")


@pytest.mark.parametrize("form", ["msgpack", "json", "parquet"])
def test_the_tutorials_first_line_makes_a_dataset(form, tmp_path):
    ended = torch_diode(
        *("--format", form, "--seed", "42", "--device", "cpu", "collect"),
        *("--output", f"tutorial_dataset.{form}", "--num-shapes", "3"),
        *("--search-space", "EXHAUSTIVE", "--search-mode", "max-autotune", "--log-normal"),
        *SMALL,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    assert [p.name for p in tmp_path.iterdir()] == [f"tutorial_dataset.{form}"]
    dataset = read_dataset(tmp_path / f"tutorial_dataset.{form}")
    assert len(dataset.problems) == 3
    assert dataset.texts("template") == ["aten"]
    assert dataset.texts("method") == ["sweep"]
    assert dataset.texts("status") == ["ok"]
    assert f"Hardware: {detect('cpu').name}" in ended.stdout
    assert "3 of 3 problems, 3 timings" in ended.stdout


def test_the_options_choose_the_shapes(tmp_path):
    ended = torch_diode(
        *(*CPU, "--output", "out", "--num-shapes", "4", "--operations", "mm", "bmm"),
        *("--dtypes", "float32", "--min-size", "16", "--max-size", "64", "--power-of-two"),
        *("--no-rectangular", "--no-odd-sizes", "--chunk-size", "1", "--layout", "nt"),
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    problems = {timing.problem for timing in read_dataset(tmp_path / "out" / "timings.parquet")}
    assert len(problems) == 4
    for problem in problems:
        assert problem.M == problem.N == problem.K
        assert problem.M in (16, 32, 64)
        assert problem.op in ("mm", "bmm")
        assert (problem.dtype, problem.layout) == ("float32", "nt")


def test_the_same_seed_draws_the_same_problems(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        torch_diode(*CPU, "--output", name, "--num-shapes", "3", *SMALL, cwd=tmp_path)
    first, second = (
        {timing.problem for timing in read_dataset(tmp_path / name)}
        for name in ("a.parquet", "b.parquet")
    )
    assert first == second


def started(cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "torch_diode", *arguments],
        cwd=cwd,
        env={**os.environ, "TORCH_DIODE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_timings(parts: Path) -> None:
    """Until a few problems are on disk."""
    for _ in range(1200):
        if sum(file.stat().st_size for file in parts.glob(".journal-*")) > 10_000:
            return
        time.sleep(0.05)
    pytest.fail("nothing was collected within a minute")


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_the_same_command_continues(end, tmp_path):
    with started(tmp_path, *CPU, *MANY) as first:
        wait_for_timings(tmp_path / "t.parquet.parts")
        first.send_signal(end)
        output, errors = first.communicate(timeout=60)
    assert not (tmp_path / "t.parquet").exists()
    if end == signal.SIGINT:
        assert first.returncode == 130, errors
        assert "the same command continues" in output
        assert "Traceback" not in errors
    ended = torch_diode(*CPU, *MANY, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert " problems are done" in ended.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset) == len(dataset.problems) == 60


@pytest.mark.slow
def test_other_settings_on_the_same_parts_are_refused(tmp_path):
    with started(tmp_path, *CPU, *MANY) as first:
        wait_for_timings(tmp_path / "t.parquet.parts")
        first.kill()
    said = refusal(*CPU, *MANY, "--num-shapes", "61", cwd=tmp_path)
    assert "collected with num-shapes 60; got 61; give the same options" in said
    said = refusal("--seed", "43", *CPU[2:], *MANY, cwd=tmp_path)
    assert "collected with seed 42; got 43" in said


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")  # noqa: PTH110
@pytest.mark.parametrize("device", [(), ("--device", "cuda:1")])
def test_without_a_gpu_it_says_what_is_missing(device, tmp_path):
    said = refusal(*device, "collect", "--output", "t.parquet", cwd=tmp_path)
    assert "this machine has no such device" in said
    assert "diode_datasets/matmul" in said
    assert "--device cpu" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--operations", "mmm"], "operations: got 'mmm'; expected one of mm, addmm"),
        (["--dtypes", "float33"], "dtypes: got 'float33'"),
        (["--min-size", "0"], "min-size: got 0"),
        (["--min-size", "64", "--max-size", "32"], "max-size: got 32"),
        (["--max-size", "-5"], "max-size: got -5"),
        (["--search-space", "ALL"], "search-space: got 'ALL'"),
        (["--search-mode", "fast"], "search-mode: got 'fast'"),
        (["--method", "guess"], "method: got 'guess'"),
        (["--layout", "xx"], "layout: got 'xx'"),
        (["--method", "feedback"], "feedback: got the CPU; expected a GPU"),
        (["--min-size", "8", "--max-size", "8", "--num-shapes", "99"], "widen --min-size"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_nothing_is_left(arguments, said, tmp_path):
    assert said in refusal(*CPU, "--output", "t.parquet", *arguments, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_output_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").touch()
    assert "file/t.parquet" in refusal(*CPU, "--output", "file/t.parquet", cwd=tmp_path)
    assert "got the ending 'csv'" in refusal(*CPU, "--output", "t.csv", cwd=tmp_path)
    said = refusal("--format", "json", *CPU, "--output", "t.parquet", cwd=tmp_path)
    assert "got the ending .parquet; expected .json" in said
    (tmp_path / "t.parquet").touch()
    assert "exists already" in refusal(*CPU, "--output", "t.parquet", cwd=tmp_path)
