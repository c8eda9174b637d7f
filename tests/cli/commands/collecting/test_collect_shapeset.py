import pytest

from tests.cli.program import inside, told_off
from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet

CPU = ("--device", "cpu", "collect-shapeset", "--libraries", "--shapeset", "shapes.json")
CPU += ("--output", "t.json")
PROBLEMS = (
    MMShape("mm", 32, 48, 64, dtype="float32", transpose_b=True),
    MMShape("mm", 32, 48, 64, dtype="float64"),
    MMShape("addmm", 33, 49, 65, dtype="float32", bias="matrix"),
    MMShape("baddbmm", 16, 16, 16, B=4, dtype="float32"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_shapes(OperationShapeSet.of(PROBLEMS), tmp_path / "shapes.json")
    return tmp_path


def test_operations_and_dtypes_choose_among_the_problems(folder):
    ended = inside(*CPU, "--dtypes", "float32")
    assert ended.code == 0, ended.err
    timed = {timing.problem for timing in read_dataset(folder / "t.json")}
    assert timed == {p for p in PROBLEMS if p.dtype == "float32"}
    ended = inside(*CPU, "--operations", "addmm", "baddbmm", "--overwrite")
    assert ended.code == 0, ended.err
    assert read_dataset(folder / "t.json").texts("op") == ["addmm", "baddbmm"]


def test_problems_that_cannot_be_timed_are_refused():
    assert "got float64 to float64" in told_off(*CPU)
    assert "it has addmm float32" in told_off(*CPU, "--operations", "bmm")
    assert "operations: got 'mn'" in told_off(*CPU, "--operations", "mn")


@pytest.mark.parametrize("text", [None, "{", '{"format": "torch-diode table", "version": 1}'])
def test_a_file_that_is_not_a_shape_set_is_refused(text, folder):
    (folder / "shapes.json").unlink()
    if text is not None:
        (folder / "shapes.json").write_text(text)
    assert told_off(*CPU).startswith("shapes.json: ")
