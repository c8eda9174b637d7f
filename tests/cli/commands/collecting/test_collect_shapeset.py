from __future__ import annotations

import pytest

from tests.cli.program import refusal, torch_diode
from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet

CPU = ("--device", "cpu", "collect-shapeset", "--shapeset", "shapes.json", "--output", "t.json")
PROBLEMS = (
    MMShape("mm", 32, 48, 64, dtype="float32", transpose_b=True),
    MMShape("mm", 32, 48, 64, dtype="float64"),
    MMShape("addmm", 33, 49, 65, dtype="float32", bias="matrix"),
    MMShape("baddbmm", 16, 16, 16, B=4, dtype="float32"),
)


@pytest.fixture
def folder(tmp_path):
    write_shapes(OperationShapeSet.of(PROBLEMS), tmp_path / "shapes.json")
    return tmp_path


def test_the_problems_of_the_set_are_timed(folder):
    ended = torch_diode(*CPU, "--dtypes", "float32", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    found = {timing.problem for timing in read_dataset(folder / "t.json")}
    assert found == {p for p in PROBLEMS if p.dtype == "float32"}


def test_operations_choose_among_them(folder):
    ended = torch_diode(*CPU, "--operations", "addmm", "baddbmm", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert read_dataset(folder / "t.json").texts("op") == ["addmm", "baddbmm"]


def test_what_cannot_be_timed_is_refused(folder):
    assert "got float64 to float64" in refusal(*CPU, cwd=folder)
    assert "it has addmm float32" in refusal(*CPU, "--operations", "bmm", cwd=folder)
    assert "operations: got 'mn'" in refusal(*CPU, "--operations", "mn", cwd=folder)


def test_a_problem_larger_than_the_memory_is_refused(folder):
    write_shapes(
        OperationShapeSet.of([MMShape("mm", 2**23, 2**23, 64, dtype="float32")]),
        folder / "shapes.json",
    )
    assert "leave it out or lower --max-size" in refusal(*CPU, cwd=folder)


@pytest.mark.parametrize("text", [None, "{", '{"format": "torch-diode table", "version": 1}'])
def test_a_set_that_is_none_is_refused(text, tmp_path):
    if text is not None:
        (tmp_path / "shapes.json").write_text(text)
    assert refusal(*CPU, cwd=tmp_path).startswith("shapes.json: ")


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('"M": 33', '"M": 0', "M: got 0; expected a whole number from 1"),
        ('"K": 65', '"K": -64', "K: got -64; expected a whole number from 1"),
        ('"addmm"', '"admm"', "got 'admm'"),
        ('"float64"', '"float33"', "dtype: got 'float33'"),
    ],
)
def test_a_problem_that_cannot_be_is_named(was, now, said, folder):
    text = (folder / "shapes.json").read_text()
    assert was in text
    (folder / "shapes.json").write_text(text.replace(was, now))
    refused = refusal(*CPU, cwd=folder)
    assert refused.startswith("shapes.json: ")
    assert said in refused
