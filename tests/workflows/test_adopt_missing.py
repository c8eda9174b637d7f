"""What a data set lacked comes into it, in the first run's measure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

SCRIPT = Path(__file__).parents[2] / "workflows/adopt_missing.py"
PROBLEM, OTHER = MMShape("mm", 512, 512, 64), MMShape("mm", 512, 512, 128)
OLD, NEW, TOO_LARGE = (Candidate("triton::mm", TritonGEMMConfig(64, 64, k)) for k in (32, 64, 128))


def timed(problem, candidate, time):
    return Timing("nvidia-h200", problem, candidate, time)


BEFORE = [timed(PROBLEM, Candidate(ATEN), 10.0), timed(PROBLEM, OLD, 11.0)]
AGAIN = [
    timed(PROBLEM, Candidate(ATEN), 12.5),
    timed(PROBLEM, OLD, 99.0),
    timed(PROBLEM, NEW, 15.0),
    Timing("nvidia-h200", PROBLEM, TOO_LARGE, None, status="out_of_resources"),
    timed(OTHER, Candidate(ATEN), 5.0),
    timed(OTHER, NEW, 5.0),
]


def adopt(folder, *more):
    write_dataset(Dataset.from_timings(BEFORE), folder / "old.parquet")
    write_dataset(Dataset.from_timings(AGAIN), folder / "again.parquet")
    given = ["--dataset", folder / "old.parquet", "--again", folder / "again.parquet", *more]
    ended = subprocess.run(
        [sys.executable, SCRIPT, *given], capture_output=True, text=True, check=True
    )
    found = read_dataset(folder / "old.parquet")
    return ended.stdout, {(t.problem, t.candidate): t.time_us for t in found}


def test_new_candidates_come_in_by_atens_measure_and_nothing_else_changes(tmp_path):
    told, found = adopt(tmp_path)
    assert told == "2 timings, now 4; 1 problems\n"
    assert found.pop((PROBLEM, NEW)) == pytest.approx(12.0)
    assert found.pop((PROBLEM, TOO_LARGE)) is None
    assert found == {(t.problem, t.candidate): t.time_us for t in BEFORE}


def test_dry_it_only_tells(tmp_path):
    _, found = adopt(tmp_path, "--dry")
    assert (PROBLEM, NEW) not in found
