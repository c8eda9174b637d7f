import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.refusals import content_refusal
from tests.samples import BATCHED, LINEAR
from tests.strategies import shape_sets
from torch_diode.files.shape_sets import read_shapes, write_shapes
from torch_diode.types.shapes import CountedShape, OperationShapeSet


@given(shape_sets(), st.sampled_from(["s.json", "s.msgpack"]))
def test_a_shape_set_reads_back(tmp_path_factory, shapes, name):
    file = tmp_path_factory.mktemp("shapes") / name
    write_shapes(shapes, file)
    assert read_shapes(file) == shapes


def test_one_problem_stands_on_one_line(tmp_path):
    file = tmp_path / "s.json"
    write_shapes(OperationShapeSet.of([CountedShape(LINEAR, 3, "llama"), BATCHED]), file)
    lines = [line.strip() for line in file.read_text().splitlines()]
    assert (
        '{"M": 512, "N": 4096, "K": 4096, "dtype": "bfloat16", "transpose_b": true, '
        '"count": 3, "origin": "llama"}'
    ) in lines


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ([], "operations: got list; expected an object"),
        ({"mm": [5]}, "operations 'mm': got int; expected an object"),
        ({"matmul": [{"M": 1, "N": 1, "K": 1}]}, "MMShape.op: got 'matmul'"),
        ({"mm": [{"M": 1, "N": 1, "K": 1, "op": "bmm"}]}, "got a bmm problem under 'mm'"),
        ({"mm": [{"M": 1, "N": 1, "K": 1}] * 2}, "a problem twice"),
        ({"mm": [{"M": 1, "N": 1, "K": 1, "colour": 0}]}, "unknown field 'colour'"),
    ],
)
def test_a_bad_shape_set_is_refused(tmp_path, operations, said):
    data = {"format": "torch-diode shapes", "version": 2, "operations": operations}
    assert said in content_refusal(read_shapes, tmp_path / "s.json", json.dumps(data))
