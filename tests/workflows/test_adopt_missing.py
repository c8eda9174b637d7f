import pytest

from tests.scripts import run_inside
from torch_diode import Candidate, Dataset, MMShape, Timing, TritonGEMMConfig
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import ATEN

PROBLEM, OTHER = MMShape("mm", 512, 512, 64), MMShape("mm", 512, 512, 128)
VENDOR = Candidate(ATEN)
OLD, NEW, TOO_LARGE = (Candidate("triton::mm", TritonGEMMConfig(64, 64, k)) for k in (32, 64, 128))


def timed(problem, candidate, time):
    return Timing("nvidia-h200", problem, candidate, time)


BEFORE = [timed(PROBLEM, VENDOR, 10.0), timed(PROBLEM, OLD, 11.0)]
AGAIN = [
    timed(PROBLEM, VENDOR, 12.5),
    timed(PROBLEM, OLD, 99.0),
    timed(PROBLEM, NEW, 15.0),
    Timing("nvidia-h200", PROBLEM, TOO_LARGE, None, status="out_of_resources"),
    timed(OTHER, VENDOR, 5.0),
    timed(OTHER, NEW, 5.0),
]


def test_only_new_candidates_are_added_scaled_by_aten_and_a_dry_run_writes_nothing(tmp_path):
    dataset, again = tmp_path / "old.parquet", tmp_path / "again.parquet"
    write_dataset(Dataset.from_timings(BEFORE), dataset)
    write_dataset(Dataset.from_timings(AGAIN), again)
    for dry in (["--dry"], []):
        assert len(read_dataset(dataset)) == len(BEFORE)
        ended = run_inside(
            "workflows/adopt_missing.py", "--dataset", dataset, "--again", again, *dry
        )
        assert ended.stdout == "2 timings, now 4; 1 problems\n", ended.stderr
    times = {(t.problem, t.candidate): t.time_us for t in read_dataset(dataset)}
    assert times.pop((PROBLEM, NEW)) == pytest.approx(12.0)
    assert times.pop((PROBLEM, TOO_LARGE)) is None
    assert times == {(t.problem, t.candidate): t.time_us for t in BEFORE}
