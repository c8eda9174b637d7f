import json

import pytest

from tests import samples
from tests.cli.program import inside, told_off
from torch_diode.files.datasets import write_dataset
from torch_diode.files.tables import read_table, write_table
from torch_diode.types.table import Table

KEY = "mm:512x4096x4096:bfloat16:nt"
BUILD = ("table", "build", "--dataset")


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "table.json"
    write_table(Table.from_dataset(samples.dataset(), k=2), file)
    return file


def test_a_table_is_built_from_a_dataset(tmp_path):
    write_dataset(samples.dataset(), tmp_path / "data.parquet")
    ended = inside(*BUILD, tmp_path / "data.parquet", "--output", tmp_path / "t.json", "--k", "2")
    assert ended.code == 0, ended.err
    assert "3 problems on nvidia-h100, nvidia-h200" in ended.out
    assert read_table(tmp_path / "t.json") == Table.from_dataset(samples.dataset(), k=2)


def test_a_table_is_shown_as_a_whole_or_one_problem_as_json(table):
    ended = inside("table", "show", table)
    assert ended.code == 0, ended.err
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert f"nvidia-h200 {KEY} triton::mm 128x256x64 g8 s4 w8 19.75" in lines
    assert "nvidia-h200 aten 20.50" in lines
    ended = inside("table", "show", table, "--problem", KEY, "--json")
    assert list(json.loads(ended.out)["hardware"]["nvidia-h200"]) == [KEY]


def test_a_missing_or_faulty_problem_is_refused(table):
    missing = told_off("table", "show", table, "--problem", "mm:1x1x1:float16:nn")
    assert "got no row for mm:1x1x1:float16:nn" in missing
    assert "problem key: got 'mm'" in told_off("table", "show", table, "--problem", "mm")


def test_a_table_is_exported_in_torchs_form(table, tmp_path):
    output = tmp_path / "for_torch.json"
    ended = inside("table", "export", table, "--inductor", "--output", output)
    assert ended.code == 0, ended.err
    exported = json.loads(output.read_text())
    assert all(key.startswith("NVIDIA H") for key in exported)
    assert all("template_id" in entry for entries in exported.values() for entry in entries)


def test_an_export_without_a_form_and_a_broken_table_are_refused(table, tmp_path):
    output = tmp_path / "out.json"
    assert "expected --inductor" in told_off("table", "export", table, "--output", output)
    table.write_text('{"format": "torch-diode table", "version": 2, "hardware": 5}')
    said = told_off("table", "export", table, "--inductor", "--output", output)
    assert said.startswith(f"{table}: ")
    assert not output.exists()
    write_dataset(samples.dataset().filter(status="out_of_resources"), tmp_path / "d.json")
    assert "got no timing that ran" in told_off(*BUILD, tmp_path / "d.json", "-o", output)
    assert "exists already" in told_off(*BUILD, tmp_path / "d.json", "-o", table)
