import json

import pytest
from hypothesis import given

from tests import samples
from tests.files.refusals import content_refusal
from tests.strategies import tables
from torch_diode.files.tables import read_table, table_from, table_to, write_table
from torch_diode.types.table import Table


@given(tables())
def test_a_table_reads_back(tmp_path_factory, table):
    file = tmp_path_factory.mktemp("tables") / "t.json"
    write_table(table, file)
    assert read_table(file) == table
    assert table_from(table_to(table)) == table


def test_one_candidate_stands_on_one_line(tmp_path):
    file = tmp_path / "t.json"
    write_table(Table.from_dataset(samples.dataset(), k=2), file)
    lines = file.read_text().splitlines()
    assert '        {"template": "aten", "time_us": 20.5}' in lines
    assert '      "mm:512x4096x4096:bfloat16:nt": [' in lines


def test_a_table_edited_by_hand_reads(tmp_path):
    file = tmp_path / "t.json"
    file.write_text(
        """
        {"format": "torch-diode table", "version": 2,
         "hardware": {"nvidia-h200": {"mm:8x8x8:float16:nn": [
            {"template": "triton::mm", "block_m": 16, "block_n": 16, "block_k": 16},
            {"template": "aten"}]}}}
        """
    )
    ((hardware, problem, entries),) = read_table(file)
    assert (hardware, problem.key) == ("nvidia-h200", "mm:8x8x8:float16:nn")
    assert [str(entry.candidate) for entry in entries] == ["triton::mm 16x16x16 g8 s2 w4", "aten"]


GOOD = {
    "format": "torch-diode table",
    "version": 2,
    "hardware": {"nvidia-h200": {"mm:8x8x8:float16:nn": [{"template": "aten"}]}},
}
ONE = "mm:8x8x8:float16:nn"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 9}, "reads up to 2, upgrade it"),
        ({"hardware": []}, "got list; expected an object"),
        ({"hardware": {"nvidia-h200": {"mm": [{"template": "aten"}]}}}, "problem key: got 'mm'"),
        ({"hardware": {"nvidia-h200": {ONE: {}}}}, f"{ONE}: got dict; expected a list"),
        ({"hardware": {"nvidia-h200": {ONE: [5]}}}, f"{ONE}: table entry: got int"),
        ({"hardware": {"nvidia-h200": {ONE: [{"template": "triton::mm"}]}}}, f"{ONE}: Candidate"),
        (
            {"hardware": {"nvidia-h200": {ONE: [{"template": "aten", "time_us": 10**400}]}}},
            f"{ONE}: table entry.time_us",
        ),
        ({"hardware": {"nvidia-h200": {ONE: [{"template": "aten"}] * 2}}}, "a candidate twice"),
        ({"extra": 1}, "unknown field 'extra'"),
    ],
)
def test_a_bad_table_is_refused_and_says_where(tmp_path, change, said):
    content = json.dumps({**GOOD, **change})
    assert said in content_refusal(read_table, tmp_path / "t.json", content)
