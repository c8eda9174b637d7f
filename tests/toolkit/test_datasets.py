"""A directory is the same dataset to every command."""

from __future__ import annotations

import json
import shutil

import pytest

from tests import samples
from tests.cli.program import inside, told_off
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.toolkit.datasets import read_all
from torch_diode.types.errors import EmptySelectionError, FileFaultError, InvalidValueError

H200 = samples.dataset().filter(hardware="nvidia-h200")


@pytest.fixture
def folder(tmp_path):
    write_dataset(H200, tmp_path / "d.json")
    return tmp_path


@pytest.fixture
def littered(folder):
    """With what the tutorial leaves beside its data."""
    (folder / "card.json").write_text('{"format": "torch-diode model"}')
    (folder / "solution.json").write_text('{"config": []}')
    return folder


def test_what_lies_beside_the_data_is_passed_over(littered, capsys):
    shutil.copy(littered / "d.json", littered / "again.json")
    assert len(read_all(littered, ["json"])) == 6
    said = capsys.readouterr()
    assert "card.json: passed over" in said.err
    assert "solution.json: passed over" in said.err
    assert said.out == ""


def test_statistics_of_such_a_directory_are_pure_json_for_programs(littered):
    shutil.copy(littered / "d.json", littered / "again.json")
    ended = inside("stats", littered, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["timings"] == 6
    assert "card.json: passed over" in ended.err


def test_such_a_directory_is_converted_and_made_a_table_of(littered, tmp_path):
    ended = inside("convert", littered, "--output", tmp_path / "all.parquet")
    assert ended.code == 0, ended.err
    assert read_dataset(tmp_path / "all.parquet") == H200
    ended = inside("table", "build", "--dataset", littered, "--output", tmp_path / "table.json")
    assert ended.code == 0, ended.err
    assert "2 problems on nvidia-h200" in ended.out


def test_converting_refuses_a_directory_that_has_a_timing_twice_unless_told(littered, tmp_path):
    shutil.copy(littered / "d.json", littered / "again.json")
    convert = ("convert", littered, "--output", tmp_path / "all.parquet")
    assert "same timing twice" in inside(*convert).err
    assert inside(*convert, "--duplicates", "first").code == 0


def test_a_file_that_is_named_is_not_passed_over(littered):
    said = told_off("stats", littered / "card.json")
    assert "expected 'torch-diode dataset'" in said


def test_a_directory_of_other_files_alone_is_refused(littered):
    (littered / "d.json").unlink()
    with pytest.raises(EmptySelectionError, match="got no dataset among its JSON files"):
        read_all(littered)


def test_a_damaged_dataset_is_not_passed_over(folder):
    (folder / "bad.json").write_text('{"format": "torch-diode dataset"')
    with pytest.raises(FileFaultError, match=r"bad\.json: not JSON"):
        read_all(folder)


def test_only_the_forms_asked_for_are_read(folder):
    (folder / "bad.msgpack").write_bytes(b"x")
    assert len(read_all(folder, [".json"])) == 6
    with pytest.raises(InvalidValueError, match="file-extensions"):
        read_all(folder, ["xml"])
