"""The command; tests/toolkit/test_datasets.py has the function."""

import os

import pytest

from tests import samples
from tests.cli.program import inside, told_off, torch_diode
from tests.files import autoheuristic_logs
from torch_diode.files.datasets import read_dataset, write_dataset


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "data.json"
    write_dataset(samples.dataset(), file)
    return file


def test_files_and_directories_become_one_file(tmp_path):
    shards = tmp_path / "shards"
    write_dataset(samples.dataset().take([0, 1]), shards / "a.msgpack")
    write_dataset(samples.dataset().take([2, 3]), shards / "b.parquet")
    write_dataset(samples.dataset().take([4, 5, 6]), tmp_path / "c.json")
    ended = inside("convert", shards, tmp_path / "c.json", "--output", tmp_path / "all.parquet")
    assert ended.code == 0, ended.err
    assert "7 timings of 3 problems" in ended.out
    assert read_dataset(tmp_path / "all.parquet") == samples.dataset()


def test_a_part_can_be_selected(data, tmp_path):
    part = ("--hardware", "NVIDIA H200", "--operations", "addmm", "bmm")
    ended = inside("convert", data, *part, "-o", tmp_path / "part.json")
    assert ended.code == 0, ended.err
    assert {t.problem.op for t in read_dataset(tmp_path / "part.json")} == {"addmm"}
    said = told_off("convert", data, "--hardware", "amd-instinct-mi300x", "-o", tmp_path / "x.json")
    assert "got no timings of amd-instinct-mi300x; it has" in said
    assert not (tmp_path / "x.json").exists()


def test_an_existing_output_needs_overwrite(data, tmp_path):
    output = tmp_path / "out.msgpack"
    output.write_bytes(b"precious")
    assert "exists already" in told_off("convert", data, "-o", output)
    assert output.read_bytes() == b"precious"
    assert inside("convert", data, "-o", output, "--overwrite").code == 0
    assert read_dataset(output) == samples.dataset()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("empty.parquet", b"", "empty file"), ("table.csv", b"a,b", "expected one of .parquet")],
)
def test_a_bad_file_is_one_sentence_that_names_it(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    sentence = told_off("convert", tmp_path / name, "--output", tmp_path / "out.json")
    assert sentence.startswith(f"{tmp_path / name}: ")
    assert said in sentence
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_names_that_are_not_utf_8_are_names(data, tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff.parquet")
    ended = torch_diode("convert", data, "-o", odd)
    assert ended.returncode == 0, ended.stderr
    assert inside("convert", odd, "-o", tmp_path / "back.json").code == 0
    assert read_dataset(tmp_path / "back.json") == samples.dataset()


def test_the_global_format_serves_where_the_ending_names_none(data, tmp_path):
    for name in ("a.msgpack", "b.bin"):
        ended = inside("--format", "msgpack", "convert", data, "-o", tmp_path / name)
        assert ended.code == 0, ended.err
    assert (tmp_path / "a.msgpack").read_bytes() == (tmp_path / "b.bin").read_bytes()
    said = told_off("--format", "json", "convert", data, "-o", tmp_path / "out.parquet")
    assert "--format json and the ending .parquet" in said
    assert not (tmp_path / "out.parquet").exists()


def test_a_log_of_autoheuristic_becomes_a_dataset_with_its_date(tmp_path):
    log = tmp_path / "a100_mm.txt"
    log.write_text(autoheuristic_logs.log([f"{autoheuristic_logs.LINEAR},extern_mm,0.02"]))
    output = tmp_path / "a100.parquet"
    ended = inside("convert", log, "-o", output, "--collected", "2024-08")
    assert ended.code == 0, ended.err
    assert read_dataset(output).provenance["collected"] == ("2024-08",)
    said = told_off("convert", log, "-o", tmp_path / "x.json", "--collected", "lately")
    assert "got 'lately' as the date" in said
