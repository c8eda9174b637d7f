"""What was timed again gets the mean of both runs; the rest keeps its time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

SCRIPT = Path(__file__).parents[2] / "workflows/adopt_recheck.py"
FIRST, SECOND = MMShape("mm", 64, 64, 64), MMShape("mm", 128, 128, 128)
CANDIDATES = [
    Candidate(ATEN),
    *(Candidate("triton::mm", TritonGEMMConfig(64, 64, k, 2, 4)) for k in (16, 32, 64)),
]


def timings(problem, times):
    return [
        Timing("nvidia-h200", problem, candidate, time)
        for candidate, time in zip(CANDIDATES, times, strict=True)
    ]


def adopt(tmp_path, again, *more):
    before = [*timings(FIRST, (10, 11, 12, 50)), *timings(SECOND, (20, 21, 22, 90))]
    write_dataset(Dataset.from_timings(before), tmp_path / "v.parquet")
    write_dataset(Dataset.from_timings(again), tmp_path / "again.parquet")
    files = ["--dataset", tmp_path / "v.parquet", "--again", tmp_path / "again.parquet"]
    ended = subprocess.run(
        [sys.executable, SCRIPT, *files, *more], capture_output=True, text=True, check=True
    )
    times = {(t.problem, t.candidate): t.time_us for t in read_dataset(tmp_path / "v.parquet")}
    return ended.stdout, times


def test_both_runs_count_by_their_repetitions_and_the_others_stay(tmp_path):
    again = [
        replace(t, repeats=n)
        for t, n in zip(timings(FIRST, (10, 11, 9, 50)), (1, 1, 3, 9), strict=True)
    ]
    told, times = adopt(tmp_path, again[:3])
    assert times[FIRST, CANDIDATES[2]] == pytest.approx((12 * 9**3) ** (1 / 4), rel=1e-4)
    assert times[FIRST, CANDIDATES[1]] == pytest.approx(11)
    assert times[FIRST, CANDIDATES[3]] == 50
    assert times[SECOND, CANDIDATES[0]] == 20
    assert "3 timings of 1 of 2 problems" in told
    assert "by more than  20%: 33.33% lower,  0.00% higher" in told
    assert "the first run's best by the second: 1.1111 behind" in told


def test_many_repetitions_weigh_no_more_than_enough(tmp_path):
    again = [replace(t, repeats=400) for t in timings(FIRST, (20, 11, 12, 50))]
    _, times = adopt(tmp_path, again)
    assert times[FIRST, CANDIDATES[0]] == pytest.approx(10 * 2 ** (15 / 16), rel=1e-4)


def test_a_problem_that_is_not_in_the_set_is_left_out(tmp_path):
    other = timings(replace(FIRST, N=72), (1, 1, 1, 1))
    told, times = adopt(tmp_path, [*other, *timings(FIRST, (10, 11, 9, 50))])
    assert len(times) == 8
    assert "4 timings of 1 of 2 problems" in told


def test_dry_it_only_tells(tmp_path):
    _, times = adopt(tmp_path, timings(FIRST, (1, 1, 1, 1)), "--dry")
    assert times[FIRST, CANDIDATES[0]] == 10
