import pytest
from hypothesis import given, settings

from tests import samples
from tests.strategies import datasets
from torch_diode.files.datasets import FORMS, form_of, read_dataset, shards, write_dataset
from torch_diode.types.errors import EmptySelectionError, FileFaultError


@settings(max_examples=25)
@given(datasets())
def test_every_form_turns_into_every_other_and_back(tmp_path_factory, dataset):
    home = tmp_path_factory.mktemp("forms")
    for first in FORMS:
        write_dataset(dataset, home / f"one.{first}")
        read = read_dataset(home / f"one.{first}")
        assert read == dataset
        assert read.digest == dataset.digest
        for second in FORMS:
            write_dataset(read, home / f"two.{second}")
            assert read_dataset(home / f"two.{second}") == dataset


def test_writing_the_same_dataset_twice_gives_the_same_bytes(tmp_path):
    for form in FORMS:
        for name in ("one", "two"):
            write_dataset(samples.dataset(), tmp_path / f"{name}.{form}")
        assert (tmp_path / f"one.{form}").read_bytes() == (tmp_path / f"two.{form}").read_bytes()


def test_a_directory_of_shards_of_any_form_reads_as_one(tmp_path):
    dataset = samples.dataset()
    for number, form in enumerate(FORMS):
        rows = list(range(number, len(dataset), len(FORMS)))
        write_dataset(dataset.take(rows), tmp_path / f"{number}.{form}")
    (tmp_path / "notes.txt").write_text("not data")
    (tmp_path / ".0.parquet.x.tmp").write_text("left behind by a killed writer")
    (tmp_path / ".hidden.json").write_text("{")
    assert read_dataset(tmp_path) == dataset
    assert [file.name for file in shards(tmp_path)] == ["0.parquet", "1.msgpack", "2.json"]


def test_a_faulty_shard_fails_the_whole_and_is_named(tmp_path):
    write_dataset(samples.dataset(), tmp_path / "a.json")
    (tmp_path / "b.parquet").write_text("broken")
    with pytest.raises(FileFaultError, match=r"b\.parquet: not a whole Parquet file"):
        read_dataset(tmp_path)


def test_a_timing_in_two_shards_is_refused_or_one_is_kept(tmp_path):
    for name in ("a.json", "b.msgpack"):
        write_dataset(samples.dataset(), tmp_path / name)
    with pytest.raises(FileFaultError, match="same timing twice"):
        read_dataset(tmp_path)
    assert read_dataset(tmp_path, duplicates="first") == samples.dataset()


@pytest.mark.parametrize("name", ["data.csv", "data", "data.parquet.bak"])
def test_an_unknown_ending_or_form_is_refused(tmp_path, name):
    with pytest.raises(FileFaultError, match=r"expected one of \.parquet, \.msgpack, \.json"):
        form_of(tmp_path / name)
    with pytest.raises(FileFaultError):
        write_dataset(samples.dataset(), tmp_path / name)
    with pytest.raises(FileFaultError, match="got form 'csv'"):
        write_dataset(samples.dataset(), tmp_path / "x.json", "csv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EmptySelectionError, match="got no dataset file"):
        read_dataset(tmp_path)


def test_a_file_of_one_form_under_another_ending_is_refused(tmp_path):
    for form in FORMS:
        for other in FORMS:
            if form == other:
                continue
            write_dataset(samples.dataset(), tmp_path / f"x.{other}", form)
            with pytest.raises(FileFaultError, match=rf"x\.{other}: "):
                read_dataset(tmp_path / f"x.{other}")
