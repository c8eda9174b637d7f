"""Timings of kernels without a loop take the place of those with one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

SCRIPT = Path(__file__).parents[1] / "workflows/adopt_one_step.py"
PROBLEM, LONGER = MMShape("mm", 512, 512, 64), MMShape("mm", 512, 512, 128)


def timed(problem, time, *config, template="triton::mm"):
    if not config:
        return Timing("nvidia-h200", problem, Candidate(ATEN), time)
    *blocks, stages, warps = config
    made = TritonGEMMConfig(*blocks, num_stages=stages, num_warps=warps)
    return Timing("nvidia-h200", problem, Candidate(template, made), time)


BEFORE = [
    timed(PROBLEM, 10.0),
    timed(PROBLEM, 11.0, 64, 64, 32, 3, 4),
    timed(PROBLEM, 12.0, 64, 64, 64, 3, 4),
    timed(PROBLEM, 13.0, 64, 64, 64, 5, 4),
    timed(PROBLEM, 30.0, 256, 64, 64, 5, 4),
    timed(PROBLEM, 14.0, 64, 64, 64, 3, 4, template="triton::mm_persistent_tma"),
    timed(PROBLEM, 15.0, 64, 64, 64, 5, 4, template="triton::mm_persistent_tma"),
    timed(LONGER, 20.0, 64, 64, 64, 5, 4),
]
AGAIN = [
    timed(PROBLEM, 9.5),
    timed(PROBLEM, 8.0, 64, 64, 64, 1, 4),
    timed(PROBLEM, 13.5, 64, 64, 64, 3, 4, template="triton::mm_persistent_tma"),
]


def adopt(folder, *more):
    write_dataset(Dataset.from_timings(BEFORE), folder / "old.parquet")
    write_dataset(Dataset.from_timings(AGAIN), folder / "again.parquet")
    command = [sys.executable, SCRIPT, "--dataset", folder / "old.parquet", *more]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    found = read_dataset(folder / "old.parquet")
    return ended.stdout, {(t.problem, t.candidate): t.time_us for t in found}


def expected(*timings):
    return {(t.problem, t.candidate): t.time_us for t in timings}


def test_one_timing_stands_for_all_stages_and_what_was_not_timed_again_stays(tmp_path):
    told, found = adopt(tmp_path, "--again", tmp_path / "again.parquet")
    kept = (BEFORE[0], BEFORE[1], BEFORE[4], BEFORE[6], BEFORE[7])
    assert found == expected(*kept, *AGAIN[1:])
    assert "8 timings, 5 of kernels without a loop" in told
    assert "now 7, 4 of them; 2 problems" in told


def test_without_new_ones_all_old_ones_go(tmp_path):
    _, found = adopt(tmp_path)
    assert found == expected(BEFORE[0], BEFORE[1], BEFORE[7])


def test_dry_it_only_tells(tmp_path):
    _, found = adopt(tmp_path, "--dry")
    assert found == expected(*BEFORE)
