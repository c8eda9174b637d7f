"""Library calls on a CPU: each gives ATen's result, on a weight of its own."""

import pytest
import torch

from torch_diode.collection.kernels.cpu import RandomPool, library_launch
from torch_diode.collection.kernels.operands import operands_from
from torch_diode.types.candidate import LIBRARIES, MKL_PACKED
from torch_diode.types.problem import MMShape

PROBLEMS = [
    MMShape("mm", 33, 47, 65, dtype="float32", transpose_b=True),
    MMShape("mm", 33, 47, 65, dtype="float32", transpose_a=True),
    MMShape("addmm", 33, 47, 65, dtype="float32"),
    MMShape("addmm", 32, 48, 64, dtype="bfloat16", transpose_b=True),
]


@pytest.mark.parametrize("template", LIBRARIES)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_a_library_computes_the_product(template, problem):
    if template == MKL_PACKED and (
        problem.dtype != "float32" or not torch.backends.mkl.is_available()
    ):
        pytest.skip("MKL packs float32 alone")
    tensors = operands_from(problem, RandomPool(0))
    expected = tensors.aten()()
    launch = library_launch(template, tensors)
    tensors.b.zero_()
    tolerance = 2e-2 if problem.dtype == "bfloat16" else 1e-4
    torch.testing.assert_close(launch(), expected, rtol=tolerance, atol=tolerance)


def test_random_values_are_reproducible_and_not_all_alike():
    first, again = (RandomPool(3)(torch.float32, (64, 64)) for _ in range(2))
    assert torch.equal(first, again)
    pool = RandomPool(3)
    assert not torch.equal(pool(torch.float32, (64, 64)), pool(torch.float32, (64, 64)))
    assert 0.9 < pool(torch.float32, (3000, 3000)).std() < 1.1
