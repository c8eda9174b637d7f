import pytest
import torch

from torch_diode.collection.kernels.operands import operands
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import BATCHED, MMShape

CPU = torch.device("cpu")


def random_operands(problem: MMShape, seed: int = 0):
    return operands(problem, CPU, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(
    ("op", "bias"),
    [("mm", ""), ("addmm", "vector"), ("addmm", "matrix"), ("bmm", ""), ("baddbmm", "matrix")],
)
def test_aten_computes_the_problem_of_the_tensors(op, bias, layout):
    batch, (a, b) = 4 if op in BATCHED else 1, (letter == "t" for letter in layout)
    problem = MMShape(op, 5, 7, 3, batch, "float32", "", a, b, bias=bias)
    tensors = random_operands(problem)
    assert tensors.a.is_contiguous() == (not problem.transpose_a)
    assert tensors.b.is_contiguous() == (not problem.transpose_b)
    expected = tensors.a @ tensors.b
    if tensors.bias is not None:
        expected = expected + tensors.bias
    tensors.aten()()
    torch.testing.assert_close(tensors.out, expected)


def test_inputs_are_random_and_the_same_for_the_same_seed():
    problem = MMShape("mm", 16, 16, 16, dtype="float32")
    assert random_operands(problem).a.std() > 0.5
    assert torch.equal(random_operands(problem, 1).a, random_operands(problem, 1).a)
    assert not torch.equal(random_operands(problem, 1).a, random_operands(problem, 2).a)


def test_another_output_dtype_is_refused():
    with pytest.raises(InvalidValueError, match="one dtype"):
        random_operands(MMShape("mm", 4, 4, 4, out_dtype="float32"))
