import pytest
import torch

from torch_diode.integration.cpu.build import build
from torch_diode.types.candidate import CppGEMMConfig
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape


@pytest.mark.parametrize("key", ["addmm:5x100x64:float32:nt", "mm:13x33x65:float32:nn"])
def test_one_kernel_runs_with_any_packed_weight(key):
    problem = MMShape.from_key(key)
    kernel = build(problem, CppGEMMConfig(4, 32), threads=1)
    a = torch.randn(problem.M, problem.K)
    for _ in range(2):
        b, bias = torch.randn(problem.K, problem.N), torch.randn(problem.N)
        if problem.op == "addmm":
            torch.testing.assert_close(kernel.run(a, kernel.pack(b), bias), torch.addmm(bias, a, b))
        else:
            torch.testing.assert_close(kernel.run(a, kernel.pack(b)), a @ b)


@pytest.mark.parametrize("key", ["mm:5x100x64:bfloat16:nt", "mm:5x100x64:float32:tn"])
def test_what_the_template_does_not_run_is_refused(key):
    with pytest.raises(InvalidValueError, match="row-major A"):
        build(MMShape.from_key(key), CppGEMMConfig(4, 32))
