"""Timing processes on a real GPU: several of them, lost ones, and kernels that go astray."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from torch_diode.files.datasets import read_dataset

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "TORCH_DIODE": "0", "PYTHONPATH": str(ROOT)}
COLLECT = (sys.executable, "-m", "torch_diode", "collect", "--output", "t.parquet")
SMALL = ("--min-size", "64", "--max-size", "512", "--power-of-two", "--operations", "mm")


def run_campaign(output: Path, kind: str) -> str:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "tests/gpu/faulty_kernel_run.py"), str(output), kind],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_a_kernel_that_writes_astray_costs_one_config(tmp_path: Path) -> None:
    said = run_campaign(tmp_path, "bad")
    # Once among others, once alone to be found; after that every process knows of it.
    assert "lost 2" in said
    assert "illegal memory access" in said
    dataset = read_dataset(tmp_path)
    assert len(dataset.problems) == 40
    status = {(t.candidate.config and t.candidate.config.block_m, t.status) for t in dataset}
    assert status == {(None, "ok"), (32, "ok"), (64, "ok"), (128, "failed")}


def test_two_processes_share_the_work_and_the_output(tmp_path: Path) -> None:
    """On one GPU, since a test machine may have no other."""
    assert "lost 0" in run_campaign(tmp_path, "two")
    dataset = read_dataset(tmp_path)
    assert len(dataset.problems) == 40
    assert len(dataset) == 160
    assert dataset.texts("status") == ["ok"]


def test_more_processes_than_gpus_are_refused(tmp_path: Path) -> None:
    count = str(torch.cuda.device_count() + 1)
    ended = subprocess.run(
        [*COLLECT, "--workers", count],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2
    assert f"--workers: got {count}; expected at most" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_a_killed_timing_process_is_replaced(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COLLECT, "--num-shapes", "40", "--search-space", "DEFAULT", *SMALL],
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
