"""Operands of the vendor sweep; tests/gpu covers its times."""

import pytest
import torch

from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape
from workflows.measuring.vendor_sweep import _Pool

PROBLEMS = [
    MMShape("mm", 33, 17, 65, dtype="float32", transpose_a=True),
    MMShape("addmm", 8, 64, 32, dtype="float32", transpose_b=True),
    MMShape("addmm", 8, 64, 32, dtype="float32", bias="matrix"),
    MMShape("bmm", 8, 16, 32, B=3, dtype="float32", transpose_b=True),
    MMShape("baddbmm", 8, 16, 32, B=3, dtype="float32", transpose_a=True),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_operands_have_the_problems_shapes_layout_and_values(problem):
    pool = _Pool("float32", 1 << 20, torch.device("cpu"), seed=0)
    tensors = pool.operands(problem)
    batch = (problem.B,) if problem.op in ("bmm", "baddbmm") else ()
    assert tensors.a.shape == (*batch, problem.M, problem.K)
    assert tensors.b.shape == (*batch, problem.K, problem.N)
    assert tensors.out.shape == (*batch, problem.M, problem.N)
    assert tensors.a.mT.is_contiguous() == problem.transpose_a
    assert tensors.b.mT.is_contiguous() == problem.transpose_b
    for tensor in (tensors.a, tensors.b, tensors.out):
        assert tensor.storage_offset() * 4 % 256 == 0
    before = tensors.a.clone(), tensors.b.clone()
    tensors.aten()()
    assert torch.equal(tensors.a, before[0])
    assert torch.equal(tensors.b, before[1])
    product = before[0] @ before[1]
    if tensors.bias is not None:
        product += tensors.bias
    torch.testing.assert_close(tensors.out, product, rtol=1e-4, atol=1e-4)


def test_a_problem_too_large_for_the_pool_is_refused():
    pool = _Pool("bfloat16", 1 << 16, torch.device("cpu"), seed=0)
    with pytest.raises(InvalidValueError, match="expected at most"):
        pool.operands(MMShape("mm", 512, 512, 512))
