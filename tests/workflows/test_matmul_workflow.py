"""The end-to-end scripts, run by a real bash on data that is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torch_diode.files.datasets import read_dataset, write_dataset

ROOT = Path(__file__).parents[2]
DATA = ROOT / "diode_datasets/matmul/nvidia-h200/train/sweep-1.parquet"
COMMAND = f"{sys.executable} -m torch_diode"

if shutil.which("bash") is None:
    pytest.skip("bash is not installed", allow_module_level=True)


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "TORCH_DIODE": "0", "TORCH_DIODE_COMMAND": COMMAND, **variables}
    return subprocess.run(
        ["bash", ROOT / "workflows" / script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as a collection would have left it."""
    place = tmp_path_factory.mktemp("work")
    whole = read_dataset(DATA)
    number = whole.problems.ids
    (place / "run").mkdir()
    write_dataset(whole.take(number % 150 == 0), place / "run" / "train.parquet")
    write_dataset(whole.take(number % 900 == 1), place / "run" / "validation.parquet")
    return place


def test_the_workflow_and_then_the_comparison(folder):
    ended = run("matmul_workflow.sh", folder, OUTPUT_DIR="run", NUM_EPOCHS="1", TOP_N_WORST="2")
    assert ended.returncode == 0, ended.stderr
    steps = [line for line in ended.stdout.splitlines() if line.startswith("== ")]
    assert len(steps) == 4
    assert (folder / "run/model.pt").is_file()
    assert (folder / "run/logs/model-history.csv").is_file()
    ended = run(
        "matmul_max_autotune_validation.sh",
        folder,
        MODEL="run/model.pt",
        DATASET="run/validation.parquet",
    )
    assert ended.returncode == 0, ended.stderr
    assert (folder / "model_performance_analysis_by_op.json").is_file()


def test_a_step_that_fails_stops_it(tmp_path):
    ended = run("matmul_workflow.sh", tmp_path, DEVICE="cpu", DTYPES="float99", NUM_SHAPES="1")
    assert ended.returncode == 2
    assert "2 of 4" not in ended.stdout
