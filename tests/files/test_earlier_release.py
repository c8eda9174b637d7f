"""Files that release 0.1.1 wrote itself; `tests/data/release_0_1_1` says how."""

from pathlib import Path

import pytest

from tests.files.refusals import content_refusal
from torch_diode.files.datasets import read_dataset
from torch_diode.files.json import read_json
from torch_diode.files.shape_sets import read_shapes
from torch_diode.files.tables import read_table
from torch_diode.types.solution import Solution

EARLIER = Path(__file__).parents[1] / "data/release_0_1_1"


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_a_time_of_infinity_reads_as_did_not_run(form):
    dataset = read_dataset(EARLIER / f"dataset.{form}")
    assert len(dataset) == 60
    failed = [t for t in dataset if t.status == "failed"]
    assert len(failed) == 12
    assert {(t.candidate.triton.block_m, t.time_us) for t in failed} == {(256, None)}
    ran = next(t for t in dataset if t.status == "ok")
    assert (ran.hardware, ran.problem.key) == ("nvidia-h200", "mm:128x64x128:float16:nn")
    assert ran.time_us == pytest.approx(10.21, rel=1e-3)


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_a_table_has_the_fastest_config_first(form):
    _, problem, entries = next(iter(read_table(EARLIER / f"table.{form}")))
    assert problem.key == "addmm:128x64x128:float16:nn"
    assert str(entries[0].candidate) == "triton::mm 64x64x32 g8 s3 w4"
    assert len(entries) == 5


@pytest.mark.parametrize("form", ["json", "msgpack"])
@pytest.mark.parametrize("name", ["shape_set", "operation_shape_set"])
def test_a_shape_set_reads_with_or_without_operations(name, form):
    shapes = read_shapes(EARLIER / f"{name}.{form}")
    keys = [problem.key for problem in shapes.problems]
    assert keys == ["mm:128x64x256:float16:nn", "bmm:32x32x48x64:bfloat16:nn"]


@pytest.mark.parametrize(
    ("name", "ops"),
    [("solution", {None}), ("solution_by_op", {"mm", "bmm"}), ("solution_default", {None})],
)
def test_a_solution_reads_whatever_else_is_in_it(name, ops):
    solution = read_json(EARLIER / f"{name}.json", Solution.from_dict)
    assert {config.op for config in solution.configs} == ops
    first = dict(solution.configs[0].fields)
    assert (first["block_m"], first["num_warps"]) == (64, 4)


CSV = """\
name,B,M,K,N,Transposed,
addmm,1,256,512,197951,True,
bmm,1024,64,50,64,False,
mm,1,16384,128,15, true,
"""


def test_a_csv_of_shapes_keeps_which_operand_is_transposed(tmp_path):
    (tmp_path / "shapes.csv").write_text(CSV)
    assert [problem.key for problem in read_shapes(tmp_path / "shapes.csv").problems] == [
        "mm:16384x15x128:float16:nt",
        "addmm:256x197951x512:float16:nt",
        "bmm:1024x64x64x50:float16:nn",
    ]


def test_a_shape_set_made_of_that_csv_keeps_it_too(tmp_path):
    """The earlier release swapped the output's sizes."""
    raw = '{"B": 1, "M": 256, "N": 99, "K": 8, "M_dtype": "float16", "out_size": [1, 99, 256]}'
    (tmp_path / "shapes.json").write_text(f'{{"operations": {{"mm": {{"shapes": [{raw}]}}}}}}')
    (problem,) = read_shapes(tmp_path / "shapes.json").problems
    assert problem.key == "mm:256x99x8:float16:nt"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,B,M,K\nmm,1,2,3\n", "line 2: got no 'N'; expected the columns name, B, M, K, N"),
        (CSV.replace("512", "many"), "line 2: got the size 'many'; expected a whole number"),
        (CSV.replace("False", "maybe"), "line 3: shape.Transposed: got 'Maybe'; expected one of"),
        (CSV.replace("bmm", "conv"), "line 3: MMShape.op: got 'conv'; expected one of mm, addmm"),
    ],
)
def test_a_bad_csv_is_refused_by_its_line(tmp_path, text, said):
    assert said in content_refusal(read_shapes, tmp_path / "shapes.csv", text)
