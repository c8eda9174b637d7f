"""`create-validation` as a person runs it; the rest is tests/toolkit's."""

import pytest

from tests import samples
from tests.cli.program import inside, told_off
from torch_diode import MMShape, OperationShapeSet
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.shape_sets import write_shapes

CPU = ("--seed", "42", "--device", "cpu", "create-validation", "--libraries")
CPU += ("--output", "v.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_dataset(samples.dataset(), tmp_path / "train.msgpack")
    return tmp_path


def test_drawn_shapes_are_compared_with_the_data_nearby_or_named(folder):
    for named in ((), ("--exclude", "train.msgpack", "--overwrite")):
        ended = inside(*CPU, "--num-shapes", "2", "--max-size", "64", *named)
        assert ended.code == 0, ended.err
        assert "problems of train.msgpack: sizes excluded" in ended.out
    assert len(read_dataset(folder / "v.parquet").problems) == 2
    assert "no such file" in told_off(*CPU, "--exclude", "x.json", "--overwrite")


def test_the_problems_of_a_shape_set_are_selected_and_collected(folder):
    problems = [MMShape(op, 24, 24, 40, dtype="float32") for op in ("mm", "addmm")]
    write_shapes(OperationShapeSet.of(problems), folder / "shapes.json")
    ended = inside(*CPU, "--shapeset", "shapes.json", "--operations", "mm")
    assert ended.code == 0, ended.err
    assert {timing.problem for timing in read_dataset(folder / "v.parquet")} == {problems[0]}
    assert "min-size: got 0" in told_off(*CPU, "--shapeset", "shapes.json", "--min-size", "0")
