from __future__ import annotations

from tests import samples
from tests.cli.program import refusal, torch_diode
from torch_diode.files.datasets import read_dataset, write_dataset


def test_each_file_gets_a_sibling_in_messagepack(tmp_path):
    for name in ("a.json", "b.json"):
        write_dataset(samples.dataset(), tmp_path / name)
    ended = torch_diode(
        "convert-json-to-msgpack", "--input-files", "a.json", "b.json", cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    for name in ("a.msgpack", "b.msgpack"):
        assert read_dataset(tmp_path / name) == samples.dataset()


def test_outputs_go_where_they_are_told(tmp_path):
    write_dataset(samples.dataset(), tmp_path / "a.json")
    ended = torch_diode(
        "convert-json-to-msgpack", "--input-files", "a.json", "--output-dir", "out", cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    assert read_dataset(tmp_path / "out" / "a.msgpack") == samples.dataset()


def test_an_existing_output_or_another_form_stops_it_before_anything_is_written(tmp_path):
    write_dataset(samples.dataset(), tmp_path / "a.json")
    write_dataset(samples.dataset(), tmp_path / "c.parquet")
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "b.msgpack").write_bytes(b"precious")
    command = "convert-json-to-msgpack"
    said = refusal(command, "--input-files", "a.json", "b.json", cwd=tmp_path)
    assert "b.msgpack: exists already" in said
    assert (tmp_path / "b.msgpack").read_bytes() == b"precious"
    assert "expected the ending .json" in refusal(
        command, "--input-files", "a.json", "c.parquet", cwd=tmp_path
    )
    assert not (tmp_path / "a.msgpack").exists()
    again = torch_diode(command, "--input-files", "a.json", "--overwrite", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_a_file_without_a_dataset_is_refused_by_name(tmp_path):
    (tmp_path / "b.json").write_text("{}")
    ended = torch_diode("convert-json-to-msgpack", "--input-files", "b.json", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("torch-diode: b.json: got format None")
    assert [file.name for file in tmp_path.iterdir()] == ["b.json"]


def test_two_inputs_that_would_go_to_one_file_are_refused(tmp_path):
    for folder in ("one", "two"):
        write_dataset(samples.dataset(), tmp_path / folder / "a.json")
    files = ("--input-files", "one/a.json", "two/a.json", "--output-dir", "out")
    said = refusal("convert-json-to-msgpack", *files, "--overwrite", cwd=tmp_path)
    assert "got two inputs for this output" in said
    assert not (tmp_path / "out").exists()
