"""What follows a matmul turns a real compile to the side that takes it along."""

import re

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.integration.forced import FunctionHeuristic
from torch_diode import Candidate, Candidates, Ranking, TritonGEMMConfig
from torch_diode.integration import registration
from torch_diode.types.candidate import ATEN

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

WANTED = Candidate("triton::mm", TritonGEMMConfig(64, 64, 32, 8, 3, 4))


def nearly_tied(candidates: Candidates) -> Ranking:
    """ATen a little before one config, all others far behind."""
    times = [10.0 if c == Candidate(ATEN) else 10.5 if c == WANTED else 99.0 for c in candidates]
    return Ranking.by_time(np.array(times), "nearly tied")


def model(x: torch.Tensor, w: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return functional.silu(x @ w.t()) * z


@pytest.mark.parametrize("epilogues", [True, False])
def test_the_epilogue_goes_with_the_template_and_the_result_is_right(epilogues):
    from torch._inductor.utils import fresh_cache, run_and_get_code

    torch.manual_seed(0)
    x, w, z = (
        torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        for shape in ((384, 640), (512, 640), (384, 512))
    )
    torch._dynamo.reset()
    with fresh_cache(), registration.using(FunctionHeuristic(nearly_tied), epilogues=epilogues):
        got, codes = run_and_get_code(torch.compile(model), x, w, z)
        decision = registration.explain()[-1]
    code = "\n".join(codes)
    kernels = re.findall(r"async_compile\.triton\('(triton_\w+)'", code)
    assert bool(decision.epilogue) is epilogues
    assert [name.startswith("triton_tem") for name in kernels] == [epilogues]
    assert ("extern_kernels.mm(" in code) is not epilogues
    expected = model(x.double(), w.double(), z.double())
    assert float((got.double() - expected).norm() / expected.norm()) < 1e-2
