import pytest

from tests import samples
from tests.cli.program import inside, told_off
from torch_diode.files.datasets import read_dataset, write_dataset

COMMAND = ("convert-json-to-msgpack", "--input-files")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        write_dataset(samples.dataset(), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("place", [".", "out"])
def test_each_file_is_converted_beside_it_or_to_the_output_folder(folder, place):
    more = () if place == "." else ("--output-dir", place)
    ended = inside(*COMMAND, "a.json", "b.json", *more)
    assert ended.code == 0, ended.err
    for name in ("a.msgpack", "b.msgpack"):
        assert read_dataset(folder / place / name) == samples.dataset()
        assert f"{name}: 7 timings" in ended.out


def test_faults_of_any_file_are_found_before_one_is_written(folder):
    write_dataset(samples.dataset(), folder / "c.parquet")
    (folder / "b.msgpack").write_bytes(b"precious")
    assert "b.msgpack: exists already" in told_off(*COMMAND, "a.json", "b.json")
    assert (folder / "b.msgpack").read_bytes() == b"precious"
    assert "expected the ending .json" in told_off(*COMMAND, "a.json", "c.parquet")
    write_dataset(samples.dataset(), folder / "two" / "a.json")
    twice = ("a.json", "two/a.json", "--output-dir", "out", "--overwrite")
    assert "got two inputs for this output" in told_off(*COMMAND, *twice)
    assert not (folder / "a.msgpack").exists()
    assert inside(*COMMAND, "b.json", "--overwrite").code == 0


def test_a_file_without_a_dataset_is_refused_by_name(folder):
    (folder / "b.json").write_text("{}")
    assert told_off(*COMMAND, "b.json").startswith("b.json: got format None")
    assert not (folder / "b.msgpack").exists()
