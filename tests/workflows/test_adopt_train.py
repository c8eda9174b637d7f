from tests.scripts import ROOT, run_inside
from torch_diode import Candidate, Dataset, MMShape, Timing
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.candidate import ATEN

KNOWN, TIMED_ALONE, FRESH = (MMShape("mm", 517, 523, k) for k in (541, 547, 557))


def write(path, *problems):
    path.parent.mkdir(exist_ok=True)
    timings = [Timing("nvidia-h200", p, Candidate(ATEN), 10.0) for p in problems]
    write_dataset(Dataset.from_timings(timings), path)


def adopt(folder, *more):
    given = ("--new", folder / "new", "--into", folder / "train/sweep-2.parquet", *more)
    return run_inside("workflows/adopt_train.py", *given)


def collected(folder, *problems):
    write(folder / "train/sweep-1.parquet", KNOWN)
    write(folder / "train/vendor-1.parquet", TIMED_ALONE)
    write(folder / "new/shard.parquet", *problems)
    return folder / "train/sweep-2.parquet"


def test_known_problems_are_skipped_and_files_are_never_overwritten(tmp_path):
    into = collected(tmp_path, KNOWN, FRESH, TIMED_ALONE)
    for dry in (["--dry"], []):
        assert not into.exists()
        assert adopt(tmp_path, *dry).stdout == "1 timings of 1 problems; 2 were known\n"
    assert [t.problem for t in read_dataset(into)] == [FRESH]
    again = adopt(tmp_path)
    assert again.returncode == 1
    assert again.stderr == f"{into}: exists already; name a new file\n"
    elsewhere = adopt(tmp_path, "--into", tmp_path / "trian/sweep-2.parquet")
    assert elsewhere.returncode == 1
    assert elsewhere.stderr.startswith(f"{tmp_path / 'trian'}: got no dataset in it")


def test_a_validation_problem_is_refused(tmp_path):
    held = read_shapes(ROOT / "diode_datasets/shapes/real_models.json").problems[0]
    into = collected(tmp_path, FRESH, held)
    ended = adopt(tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == f"{tmp_path / 'new'}: 1 problems are for validation, such as {held}\n"
    assert not into.exists()
