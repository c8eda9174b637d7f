import json

import pytest

from tests import samples
from tests.cli.program import inside, told_off
from torch_diode.files.datasets import write_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.files.tables import read_table, write_table
from torch_diode.types.candidate import Candidate
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet
from torch_diode.types.table import Table, TableEntry

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
    assert "3 rows for nvidia-h100, nvidia-h200" in ended.out
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


def test_tables_are_merged_and_a_models_decisions_made_into_one(table, tmp_path):
    shapes = tmp_path / "shapes.msgpack"
    write_shapes(OperationShapeSet.of([MMShape.from_key(KEY)]), shapes)
    decided, both = tmp_path / "decided.msgpack", tmp_path / "both.json"
    model = ("--model", "shipped", "--hardware", "nvidia-h200", "--shapeset", shapes)
    ended = inside("table", "build", *model, "--output", decided)
    assert ended.code == 0, ended.err
    assert [row[1].key for row in read_table(decided)] == [KEY]
    assert inside("table", "merge", decided, table, "--output", both).code == 0
    assert read_table(both) == Table.merge([read_table(decided), read_table(table)])
    for wrong in ((), ("--dataset", "x", *model), ("--model", "shipped")):
        assert "expected --dataset" in told_off("table", "build", *wrong, "-o", tmp_path / "x")


def test_a_range_is_shown_for_its_problems_and_exported_for_its_own_m_alone(tmp_path):
    file = tmp_path / "table.json"
    entry = TableEntry(Candidate("aten"), M=(17, 32))
    write_table(Table((("nvidia-h200", MMShape("mm", 32, 64, 64), (entry,)),)), file)
    ended = inside("table", "show", file, "--problem", "mm:20x64x64:bfloat16:nn")
    assert "nvidia-h200 mm:32x64x64:bfloat16:nn 17-32 aten" in " ".join(ended.out.split())
    ended = inside("table", "export", file, "--inductor", "--output", tmp_path / "torch.json")
    assert "1 rows hold for a range of M, of which torch's form has none" in ended.err
    assert all("[32, 64]" in key for key in json.loads((tmp_path / "torch.json").read_text()))


def test_a_cpus_table_has_no_form_of_torchs(tmp_path):
    problem = MMShape("mm", 32, 64, 64, dtype="float32")
    entries = (TableEntry(Candidate("onednn")), TableEntry(Candidate("aten")))
    write_table(Table((("amd-zen5", problem, entries),)), tmp_path / "table.json")
    export = ("table", "export", tmp_path / "table.json", "--inductor", "-o", tmp_path / "t.json")
    assert "got no row for a GPU" in told_off(*export)
    assert not (tmp_path / "t.json").exists()
