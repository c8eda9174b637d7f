from dataclasses import replace

import pytest

from tests.scripts import run_inside
from torch_diode import Candidate, Dataset, MMShape, Timing, TritonGEMMConfig
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import ATEN

FIRST, SECOND = MMShape("mm", 64, 64, 64), MMShape("mm", 128, 128, 128)
CANDIDATES = [
    Candidate(ATEN),
    *(Candidate("triton::mm", TritonGEMMConfig(64, 64, k, 2, 4)) for k in (16, 32, 64)),
]


def timings(problem, times, repeats=(1, 1, 1, 1)):
    return [
        Timing("nvidia-h200", problem, candidate, time, repeats=count)
        for candidate, time, count in zip(CANDIDATES, times, repeats, strict=True)
    ]


def adopt(tmp_path, again, *more):
    before = [*timings(FIRST, (10, 11, 12, 50)), *timings(SECOND, (20, 21, 22, 90))]
    write_dataset(Dataset.from_timings(before), tmp_path / "v.parquet")
    write_dataset(Dataset.from_timings(again), tmp_path / "again.parquet")
    files = ("--dataset", tmp_path / "v.parquet", "--again", tmp_path / "again.parquet")
    ended = run_inside("workflows/adopt_recheck.py", *files, *more)
    assert ended.returncode == 0, ended.stderr
    times = {(t.problem, t.candidate): t.time_us for t in read_dataset(tmp_path / "v.parquet")}
    return ended.stdout, times


def test_runs_are_weighted_by_repetitions_and_other_timings_stay(tmp_path):
    unknown = timings(replace(FIRST, N=72), (1, 1, 1, 1))
    again = timings(FIRST, (10, 11, 9, 50), repeats=(1, 1, 3, 9))
    text, times = adopt(tmp_path, [*unknown, *again[:3]])
    assert len(times) == 8
    assert times[FIRST, CANDIDATES[2]] == pytest.approx((12 * 9**3) ** (1 / 4), rel=1e-4)
    assert times[FIRST, CANDIDATES[1]] == pytest.approx(11)
    assert times[FIRST, CANDIDATES[3]] == 50
    assert times[SECOND, CANDIDATES[0]] == 20
    assert "3 timings of 1 of 2 problems" in text
    assert "by more than  20%: 33.33% lower,  0.00% higher" in text
    assert "the first run's best by the second: 1.1111 behind" in text


def test_the_weight_of_repetitions_is_bounded_and_a_dry_run_writes_nothing(tmp_path):
    again = timings(FIRST, (20, 11, 12, 50), repeats=(400,) * 4)
    _, times = adopt(tmp_path, again, "--dry")
    assert times[FIRST, CANDIDATES[0]] == 10
    _, times = adopt(tmp_path, again)
    assert times[FIRST, CANDIDATES[0]] == pytest.approx(10 * 2 ** (15 / 16), rel=1e-4)
