"""A run becomes a file of the training data, without what is known or held for validation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

ROOT = Path(__file__).parents[2]
KNOWN, TIMED_ALONE, FRESH = (MMShape("mm", 517, 523, k) for k in (541, 547, 557))


def write(path, *problems):
    timings = [Timing("nvidia-h200", p, Candidate(ATEN), 10.0) for p in problems]
    write_dataset(Dataset.from_timings(timings), path)


def adopt(folder, *more):
    given = ["--new", folder / "new", "--into", folder / "train/sweep-2.parquet", *more]
    return subprocess.run(
        [sys.executable, ROOT / "workflows/adopt_train.py", *given],
        capture_output=True,
        text=True,
        check=False,
    )


def collected(folder, *problems):
    for name in ("train", "new"):
        (folder / name).mkdir()
    write(folder / "train/sweep-1.parquet", KNOWN)
    write(folder / "train/vendor-1.parquet", TIMED_ALONE)
    write(folder / "new/shard.parquet", *problems)
    return folder / "train/sweep-2.parquet"


def test_known_problems_stay_out_and_what_is_there_is_not_written_over(tmp_path):
    into = collected(tmp_path, KNOWN, FRESH, TIMED_ALONE)
    dry = adopt(tmp_path, "--dry")
    assert dry.stdout == "1 timings of 1 problems; 2 were known\n"
    assert not into.exists()
    assert adopt(tmp_path).stdout == dry.stdout
    assert [t.problem for t in read_dataset(into)] == [FRESH]
    again = adopt(tmp_path)
    assert again.returncode == 1
    assert again.stderr == f"{into}: exists already; name a new file\n"


def test_a_problem_for_validation_ends_it(tmp_path):
    held = read_shapes(ROOT / "diode_datasets/shapes/real_models.json").problems[0]
    into = collected(tmp_path, FRESH, held)
    ended = adopt(tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == f"{tmp_path / 'new'}: 1 problems are for validation, such as {held}\n"
    assert not into.exists()


def test_a_folder_that_is_not_the_datas_is_refused(tmp_path):
    collected(tmp_path, FRESH)
    ended = adopt(tmp_path, "--into", tmp_path / "trian/sweep-2.parquet")
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"{tmp_path / 'trian'}: got no dataset in it")
