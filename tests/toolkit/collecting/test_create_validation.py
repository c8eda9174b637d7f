import pytest

from torch_diode import Candidate, CollectOptions, Dataset, MMShape, ShapeSampling, Timing, collect
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.toolkit.collecting.create_validation import create_validation
from torch_diode.types.errors import EmptySelectionError, FileFaultError

CPU = CollectOptions(device="cpu", libraries_only=True, seed=42)


def few(count: int) -> ShapeSampling:
    """Of sixty-four shapes, of which the training set has forty-eight."""
    return ShapeSampling(count, ("mm",), min_size=8, max_size=64, power_of_two=True)


def training(*problems: MMShape) -> Dataset:
    return Dataset.from_timings(Timing("nvidia-h200", p, Candidate("aten"), 1.0) for p in problems)


def sizes(dataset: Dataset) -> set[tuple[int, int, int]]:
    return {(t.problem.M, t.problem.N, t.problem.K) for t in dataset}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A training set of another dtype and another chip: here a problem is its sizes."""
    powers = (8, 16, 32, 64)
    known = [MMShape("mm", m, n, k) for m in powers for n in powers for k in powers if m != n]
    write_dataset(training(*known), tmp_path / "train.msgpack")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def messages():
    """Messages of a call, which gets `messages.append` as its callback."""

    class Messages(list):
        def append(self, report):
            if report.message:
                super().append(report.message)

        def __str__(self):
            return "\n".join(self)

    return Messages()


def test_no_size_is_shared_with_the_data_beside_the_output(folder, messages):
    (folder / "damaged.json").write_text('{"format": "torch-diode dataset"')
    (folder / "model.json").write_text('{"format": "torch-diode model", "version": 1}')
    result = create_validation("v.parquet", few(10), CPU, progress=messages.append)
    assert "compared with 48 problems of train.msgpack" in str(messages)
    assert "not compared with damaged.json" in str(messages)
    assert "model.json" not in str(messages)
    assert len(result.dataset.problems) == 10
    assert not sizes(result.dataset) & sizes(read_dataset(folder / "train.msgpack"))


def test_only_the_data_named_is_excluded(folder, messages):
    (folder / "elsewhere").mkdir()
    (folder / "train.msgpack").rename(folder / "elsewhere" / "train.msgpack")
    (folder / "elsewhere" / "model.json").write_text('{"format": "torch-diode model"}')
    write_dataset(training(MMShape("mm", 8, 8, 8)), folder / "other.json")
    for path in ("elsewhere/train.msgpack", "elsewhere"):
        result = create_validation(
            f"v/{len(messages)}", few(16), CPU, exclude=[path], progress=messages.append
        )
        assert f"compared with 48 problems of {path}" in str(messages)
        assert (8, 8, 8) in sizes(result.dataset)
        assert all(m == n for m, n, _ in sizes(result.dataset))
    with pytest.raises(FileFaultError, match="no such file"):
        create_validation("w.json", few(1), CPU, exclude=["gone.json"])


@pytest.mark.parametrize(
    ("train", "output"),
    [
        ("train.msgpack", "val"),
        ("train/timings.parquet", "val"),
        ("train/t.parquet", "val/v.parquet"),
        ("train.msgpack", "far/away/v.parquet"),
        ("train/shard.parquet", "v.parquet"),
        ("v2.parquet.parts/shard.parquet", "v.parquet"),
    ],
)
def test_training_data_is_found_where_it_usually_is(folder, train, output, messages, monkeypatch):
    """In the working directory, or beside the output's folder, though it has the output's name;
    or as the shards of a dataset or of an interrupted collection."""
    write_dataset(read_dataset(folder / "train.msgpack"), folder / "data" / train)
    (folder / "train.msgpack").unlink()
    monkeypatch.chdir(folder / "data")
    create_validation(output, few(10), CPU, progress=messages.append)
    assert f"compared with 48 problems of {train}" in str(messages)
    assert "compared with nothing" not in str(messages)


def test_a_seed_draws_other_problems_than_collect_does_with_it(tmp_path, messages, monkeypatch):
    (tmp_path / "apart").mkdir()
    monkeypatch.chdir(tmp_path / "apart")
    sampling = ShapeSampling(4, max_size=64)
    trained = collect(tmp_path / "far" / "away" / "t.parquet", sampling, CPU)
    apart = create_validation("v.parquet", sampling, CPU, progress=messages.append)
    assert messages[0] == (
        "compared with nothing: no other dataset was found; name training data with --exclude"
    )
    assert not sizes(trained.dataset) & sizes(apart.dataset)


def test_more_problems_than_are_left_is_refused(folder):
    with pytest.raises(EmptySelectionError, match="got 16 problems that no other dataset has"):
        create_validation("v.parquet", few(17), CPU)


def test_listed_problems_that_training_has_are_left_out(folder, messages):
    fresh = MMShape("mm", 24, 24, 24, dtype="float32")
    old = MMShape("mm", 8, 16, 8, dtype="float32")
    result = create_validation("v.parquet", [fresh, old], CPU, progress=messages.append)
    assert "1 problems left out: training data has them" in str(messages)
    assert result.problems == (fresh,)
    with pytest.raises(EmptySelectionError, match="all of them in training data"):
        create_validation("w.parquet", [old], CPU)
