"""Plans of the data sets' collector, without a GPU."""

import re

import pytest

from tests.scripts import ROOT, run_inside
from torch_diode.files.datasets import read_dataset, write_dataset

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")


def planned(*options: object) -> list[tuple[int, int]]:
    """Kernels and timings of each group."""
    ended = run_inside("workflows/collect_matmul.py", *options, "--plan")
    assert ended.returncode == 0, ended.stderr
    pairs = re.findall(r"(\d+) kernels +(\d+) timings$", ended.stdout, re.MULTILINE)
    return [(int(kernels), int(timings)) for kernels, timings in pairs]


def test_only_contenders_are_timed_again(tmp_path):
    whole = read_dataset(ROOT / "diode_datasets/matmul/nvidia-h200/validation/full-2.parquet")
    few = whole.take(whole.problems.ids < 3)
    write_dataset(few, tmp_path / "few.parquet")
    groups = planned("recheck", "--dataset", tmp_path / "few.parquet")
    assert 3 <= sum(timings for _, timings in groups) < len(few) / 2


def test_a_missing_dataset_is_a_usage_error():
    ended = run_inside("workflows/collect_matmul.py", "recheck", "--plan")
    assert ended.returncode == 2
    assert "--dataset" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ranked_classes_of_one_kind_share_a_few_kernels():
    options = ("--problems", "4", "--configs", "12", "--processes", "1")
    classes = ("--classes", "mm bfloat16 nt aligned", "mm bfloat16 nt aligned M<=64")
    ((kernels, timings),) = planned("train", "--ranked", *options, *classes)
    assert 8 < timings < 8 * 13  # ATen and up to twelve configs
    assert 0 < kernels <= 12 * 4
