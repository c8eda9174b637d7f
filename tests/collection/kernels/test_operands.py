from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from tests.strategies import problems
from torch_diode.collection.kernels.operands import bytes_needed, operands
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape

CPU = torch.device("cpu")


def made(problem: MMShape, seed: int = 0):
    return operands(problem, CPU, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(
    ("op", "bias"),
    [
        ("mm", ""),
        ("addmm", "vector"),
        ("addmm", "matrix"),
        ("bmm", ""),
        ("baddbmm", "matrix"),
    ],
)
def test_aten_computes_the_problem_the_tensors_stand_for(op: str, bias: str, layout: str) -> None:
    problem = MMShape(
        op,
        5,
        7,
        3,
        B=4 if "b" in op[:2] else 1,
        dtype="float32",
        bias=bias,
        transpose_a=layout[0] == "t",
        transpose_b=layout[1] == "t",
    )
    tensors = made(problem)
    assert tensors.a.is_contiguous() == (not problem.transpose_a)
    assert tensors.b.is_contiguous() == (not problem.transpose_b)
    expected = tensors.a @ tensors.b
    if tensors.bias is not None:
        expected = expected + tensors.bias
    tensors.aten()()
    torch.testing.assert_close(tensors.out, expected)


def test_inputs_are_random_and_the_same_for_the_same_seed() -> None:
    problem = MMShape("mm", 16, 16, 16, dtype="float32")
    assert made(problem).a.std() > 0.5
    assert torch.equal(made(problem, 1).a, made(problem, 1).a)
    assert not torch.equal(made(problem, 1).a, made(problem, 2).a)


def test_another_output_dtype_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="one dtype"):
        made(MMShape("mm", 4, 4, 4, out_dtype="float32"))


@given(problems())
@settings(max_examples=50)
def test_the_memory_counted_covers_inputs_output_and_a_copy_of_it(problem: MMShape) -> None:
    assert bytes_needed(problem) > problem.bytes_moved
