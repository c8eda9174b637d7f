import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import problems
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import DTYPE_BYTES, DTYPES, MMShape


@given(problems())
def test_a_key_names_its_problem_exactly(problem):
    assert MMShape.from_key(problem.key) == problem


@given(problems())
def test_a_problem_survives_json_and_pickling(problem):
    assert MMShape.from_dict(problem.to_dict()) == problem
    again = pickle.loads(pickle.dumps(problem))
    assert (again, hash(again)) == (problem, hash(problem))


@given(st.text())
def test_a_text_that_is_no_key_is_refused_in_one_line(text):
    with pytest.raises(InvalidValueError, match=r"^problem key: got [^\n]*$"):
        MMShape.from_key(text)


def test_the_key_reads_as_the_spec_has_it():
    assert str(MMShape("mm", 512, 4096, 4096, transpose_b=True)) == "mm:512x4096x4096:bfloat16:nt"
    batched = MMShape("bmm", 128, 128, 64, B=8, dtype="float16")
    assert batched.key == "bmm:8x128x128x64:float16:nn"
    full = MMShape("addmm", 1, 2, 3, dtype="float32", out_dtype="float16", tf32=True, bias="matrix")
    assert full.key == "addmm:1x2x3:float32:nn:tf32:out=float16:bias=matrix"


SIZES = ("1x2", "1x2x3x4", "0x2x3", "1x2x99999999999")
SUFFIXES = ("bfloat16:nx", "bfloat17:nn", "bfloat16:nn\n")


@pytest.mark.parametrize(
    "key",
    [f"mm:{sizes}:bfloat16:nn" for sizes in SIZES]
    + [f"mm:1x2x3:{suffix}" for suffix in SUFFIXES]
    + ["bmm:1x2x3:bfloat16:nn", "mm", "", None, 5],
)
def test_an_invalid_key_is_refused(key):
    with pytest.raises(InvalidValueError):
        MMShape.from_key(key)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"op": "matmul"}, "MMShape.op: got 'matmul'"),
        ({"op": "bm"}, "did you mean 'bmm'"),
        ({"M": 0}, "MMShape.M: got 0"),
        ({"B": 2}, "expected 1 for mm; use bmm for a batch"),
        ({"dtype": "fp16"}, "MMShape.dtype: got 'fp16'"),
        ({"transpose_a": 1}, "MMShape.transpose_a: got 1; expected true or false"),
        ({"bias": "vector"}, "expected none for mm"),
        ({"op": "addmm", "bias": "none"}, "expected vector or matrix for addmm"),
        ({"tf32": True}, "expected false for bfloat16"),
    ],
)
def test_a_bad_field_is_refused_by_name(change, said):
    with pytest.raises(InvalidValueError, match=re.escape(said)):
        MMShape(**{"op": "mm", "M": 8, "N": 8, "K": 8, **change})


def test_an_unknown_or_missing_field_is_refused():
    with pytest.raises(InvalidValueError, match=r"unknown field 'transposeb'.*'transpose_b'"):
        MMShape.from_dict({"op": "mm", "M": 1, "N": 1, "K": 1, "transposeb": True})
    with pytest.raises(InvalidValueError, match="got no field 'K'"):
        MMShape.from_dict({"op": "mm", "M": 1, "N": 1})


def test_defaults_follow_from_the_op_and_the_dtype():
    assert MMShape("mm", 1, 1, 1, dtype="float16").out_dtype == "float16"
    assert MMShape("addmm", 1, 1, 1).bias == "vector"
    assert MMShape("baddbmm", 1, 1, 1).bias == "matrix"


def test_the_kind_is_the_op_and_the_precision_of_its_products():
    assert MMShape("mm", 1, 1, 1).kind == "mm/bfloat16"
    assert MMShape("bmm", 1, 1, 1, dtype="float32", tf32=True).kind == "bmm/tf32"


def test_flops_and_bytes_count_inputs_output_and_bias():
    problem = MMShape("baddbmm", 2, 3, 5, B=7, dtype="float16", out_dtype="float32")
    assert problem.flops == 2 * 7 * 2 * 3 * 5
    assert problem.bytes_moved == 7 * ((2 * 5 + 5 * 3) * 2 + 2 * (2 * 3) * 4)


def test_every_dtype_has_the_width_torch_gives_it():
    import torch

    assert {name: getattr(torch, name).itemsize for name in DTYPES} == DTYPE_BYTES
