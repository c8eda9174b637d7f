"""Timing processes on a real GPU: several of them, killed ones, and faulty kernels."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.gpu.programs import ENVIRONMENT, run, torch_diode
from torch_diode.files.datasets import read_dataset

COLLECT = ("collect", "--output", "t.parquet")
SMALL = (
    *("--search-space", "DEFAULT", "--operations", "mm"),
    *("--min-size", "64", "--max-size", "512", "--power-of-two"),
)


def test_a_kernel_with_an_illegal_access_fails_one_config(tmp_path):
    output = run("tests/gpu/faulty_kernel_run.py", tmp_path, "faulty").stdout
    # Once among others, once alone to identify it; after that every process excludes it.
    assert "lost 2" in output
    assert "illegal memory access" in output
    dataset = read_dataset(tmp_path)
    assert len(dataset.problems) == 40
    status = {(t.candidate.config and t.candidate.config.block_m, t.status) for t in dataset}
    assert status == {(None, "ok"), (32, "ok"), (64, "ok"), (128, "failed")}


def test_two_processes_share_the_work_and_the_output(tmp_path):
    """On one GPU, since a test machine may have no other."""
    assert "lost 0" in run("tests/gpu/faulty_kernel_run.py", tmp_path, "two").stdout
    dataset = read_dataset(tmp_path)
    assert len(dataset.problems) == 40
    assert len(dataset) == 160
    assert dataset.texts("status") == ["ok"]


def test_more_workers_than_gpus_are_refused(tmp_path):
    count = str(torch.cuda.device_count() + 1)
    ended = torch_diode(*COLLECT, "--workers", count, cwd=tmp_path, code=2)
    assert f"--workers: got {count}; expected at most" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_a_killed_timing_process_is_replaced(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "torch_diode", *COLLECT, "--num-shapes", "40", *SMALL],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ) as collector:
        parts = tmp_path / "t.parquet.parts"
        for _ in range(2000):
            if sum(file.stat().st_size for file in parts.glob(".journal-*")) > 20_000:
                break
            time.sleep(0.1)
        children = Path(f"/proc/{collector.pid}/task/{collector.pid}/children").read_text()
        for child in map(int, children.split()):
            if "/dev/nvidia" in Path(f"/proc/{child}/maps").read_text():
                os.kill(child, 9)
        output, _ = collector.communicate(timeout=280)
    assert collector.returncode == 0
    assert "timing processes were lost" in output
    assert len(read_dataset(tmp_path / "t.parquet").problems) == 40
