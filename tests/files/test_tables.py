import json
from dataclasses import replace

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import samples
from tests.files.refusals import content_refusal
from tests.strategies import tables
from torch_diode.files import tables as tables_files
from torch_diode.files.tables import IndexedTable, read_table, table_from, table_to, write_table
from torch_diode.types.errors import DiodeError
from torch_diode.types.table import Table


@given(tables(), st.sampled_from(["t.json", "t.msgpack"]))
def test_a_table_reads_back(tmp_path_factory, table, name):
    file = tmp_path_factory.mktemp("tables") / name
    write_table(table, file)
    assert read_table(file) == table
    assert table_from(table_to(table)) == table
    assert Table.parse(table.serialize()) == table


@pytest.fixture(scope="module")
def small_is_large():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_files, "LARGE", 0)
        yield


LAYOUTS = {
    "t.json": lambda data: tables_files.json.dumps(data, 4).encode(),
    "line.json": lambda data: json.dumps(data).encode(),
    "indented.json": lambda data: json.dumps(data, indent=2).encode(),
    "t.msgpack": msgpack.packb,
}


@pytest.mark.usefixtures("small_is_large")
@given(tables(), st.sampled_from(sorted(LAYOUTS)))
def test_a_large_table_answers_as_one_read_as_a_whole(tmp_path_factory, table, name):
    file = tmp_path_factory.mktemp("tables") / name
    file.write_bytes(LAYOUTS[name](table_to(table)))
    indexed = read_table(file)
    assert isinstance(indexed, IndexedTable) or len(table) < 2
    assert (indexed.rows, indexed.provenance) == (table.rows, table.provenance)
    assert (len(indexed), indexed.hardware) == (len(table), table.hardware)
    assert sorted(indexed.spans()) == sorted(table.spans())
    for hardware, problem, entries in table:
        assert indexed.lookup(hardware, problem) == entries
        other = replace(problem, M=max(1, problem.M - 1))
        assert indexed.find(hardware, other, 0.5) == table.find(hardware, other, 0.5)


@pytest.mark.usefixtures("small_is_large")
@given(tables(), st.sampled_from(sorted(LAYOUTS)), st.randoms())
def test_a_damaged_large_table_is_refused_or_reads_as_its_content(
    tmp_path_factory, table, name, random
):
    data = bytearray(LAYOUTS[name](table_to(table)))
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data))
        data[at : at + random.randint(0, 4)] = random.choice([b"", b"]", b'"', b"}", b"[", b"\x93"])
    file = tmp_path_factory.mktemp("tables") / name
    file.write_bytes(data)
    form = tables_files.packed if file.suffix == ".msgpack" else tables_files.json
    indexed = content(lambda: read_table(file))
    assert indexed == content(lambda: table_from(form.loads(bytes(data))))


def content(read):
    try:
        return set(read().rows)
    except DiodeError:
        return "refused"


def test_one_candidate_stands_on_one_line(tmp_path):
    file = tmp_path / "t.json"
    write_table(Table.from_dataset(samples.dataset(), k=2), file)
    lines = file.read_text().splitlines()
    assert (
        '        {"template": "aten", "time_us": 20.5, "measured": "2026-01-01", "repeats": 5}'
        in lines
    )
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
