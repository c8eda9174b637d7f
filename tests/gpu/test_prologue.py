"""Operations before the only template choice stay kernels of their own in a real compile."""

import re
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from torch_diode.integration import registration

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ROWS, WIDTH, OUT = 384, 640, 512


def gathered() -> tuple[Callable[..., torch.Tensor], list[torch.Tensor]]:
    table = torch.randn(5_000, WIDTH, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(OUT, WIDTH, device="cuda", dtype=torch.bfloat16)
    rows = torch.randint(5_000, (ROWS,), device="cuda")
    return (lambda t, w, i: t[i] @ w.t()), [table, weight, rows]


def activated() -> tuple[Callable[..., torch.Tensor], list[torch.Tensor]]:
    x, w = (torch.randn(rows, WIDTH, device="cuda") for rows in (ROWS, OUT))
    return (lambda x, w: functional.gelu(x) @ w.t()), [x, w]


@pytest.mark.parametrize("case", [gathered, activated])
def test_work_on_an_operand_is_a_kernel_of_its_own(case):
    from torch._inductor.utils import fresh_cache, run_and_get_code

    torch.manual_seed(0)
    fn, inputs = case()
    torch._dynamo.reset()
    with fresh_cache(), registration.using(Forced(CONFIG)):
        result, codes = run_and_get_code(torch.compile(fn), *inputs)
    kernels = re.findall(r"async_compile\.triton\('(triton_[a-z]+)", "\n".join(codes))
    assert kernels == ["triton_poi", "triton_tem"]
    expected = fn(*(t.double() if t.is_floating_point() else t for t in inputs))
    assert float((result.double() - expected).norm() / expected.norm()) < 1e-2
