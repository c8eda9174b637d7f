"""The end-to-end scripts, run by bash on existing data."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SHIPPED_TIMINGS
from tests.scripts import ROOT
from torch_diode.files.datasets import read_dataset, write_dataset

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


def test_the_workflow_trains_and_validates_and_its_model_is_compared(tmp_path):
    folder = tmp_path
    whole = read_dataset(SHIPPED_TIMINGS)
    number = whole.problems.ids
    (folder / "run").mkdir()
    write_dataset(whole.take(number % 1200 == 0), folder / "run" / "train.parquet")
    write_dataset(whole.take(number % 6000 == 1), folder / "run" / "validation.parquet")
    ended = run("matmul_workflow.sh", folder, OUTPUT_DIR="run", NUM_EPOCHS="1", TOP_N_WORST="2")
    assert ended.returncode == 0, ended.stderr
    steps = [line for line in ended.stdout.splitlines() if line.startswith("== ")]
    assert len(steps) == 4
    assert (folder / "run/model.pt").is_file()
    assert (folder / "run/logs/model-history.csv").is_file()
    given = {"MODEL": "run/model.pt", "DATASET": "run/validation.parquet"}
    ended = run("matmul_max_autotune_validation.sh", folder, **given)
    assert ended.returncode == 0, ended.stderr
    assert (folder / "model_performance_analysis_by_op.json").is_file()


def test_a_failed_step_stops_the_workflow(tmp_path):
    ended = run("matmul_workflow.sh", tmp_path, DEVICE="cpu", DTYPES="float99", NUM_SHAPES="1")
    assert ended.returncode == 2
    assert "2 of 4" not in ended.stdout
