"""What the shipped data's collector would time, without a GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from torch_diode.files.datasets import read_dataset, write_dataset

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")

ROOT = Path(__file__).parents[2]
VALIDATION = ROOT / "diode_datasets/matmul/nvidia-h200/validation"


def collect(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "workflows/collect_matmul.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)


def test_only_contenders_are_timed_again(tmp_path):
    whole = read_dataset(VALIDATION)
    few = whole.take(whole.problems.ids < 3)
    write_dataset(few, tmp_path / "few.parquet")
    ended = collect("recheck", "--plan", "--dataset", str(tmp_path / "few.parquet"))
    assert ended.returncode == 0, ended.stderr
    timings = sum(map(int, re.findall(r"(\d+) timings$", ended.stdout, re.MULTILINE)))
    assert 3 <= timings < len(few) / 2


def test_without_a_dataset_it_says_what_is_missing():
    ended = collect("recheck", "--plan")
    assert ended.returncode == 2
    assert "--dataset" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_of_ranked_problems_few_candidates_are_timed_and_few_kernels_compiled():
    options = ("--plan", "--problems", "4", "--configs", "12", "--processes", "1")
    classes = ("--classes", "mm bfloat16 nt aligned", "mm bfloat16 nt aligned M<=64")
    ended = collect("train", "--ranked", *options, *classes)
    assert ended.returncode == 0, ended.stderr
    ((kernels, timings),) = re.findall(r"(\d+) kernels +(\d+) timings$", ended.stdout, re.MULTILINE)
    assert 8 < int(timings) < 8 * 13  # two classes of one kind are one group; ATen and up to twelve
    assert 0 < int(kernels) <= 12 * 4
