"""The sweep on the CPU, with correct and wrong products in place of kernels."""

import pytest
import torch

from torch_diode import Candidate, Candidates, MMShape, TritonGEMMConfig
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.types.candidate import ATEN

CORRECT, WRONG, IDLE = (TritonGEMMConfig(16, 16, 16, num_warps=warps) for warps in (1, 2, 4))
CANDIDATES = [Candidate(ATEN), *(Candidate("triton::mm", c) for c in (CORRECT, WRONG, IDLE))]


class CpuLauncher:
    """Launches products: a correct one, one of half of A, and none at all."""

    def spec_for(self, problem, candidate):
        return candidate.config

    def bind(self, spec, tensors):
        if spec == IDLE:
            return lambda: None
        share = 2 if spec == WRONG else 1
        return lambda: torch.mm(tensors.a / share, tensors.b, out=tensors.out)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_kernel_with_a_wrong_result_has_no_time(dtype):
    sweep = Sweep("cpu", CpuLauncher(), CpuTimer(cache_bytes=1 << 15), {})
    problem = MMShape("mm", 16, 24, 32, dtype=dtype)
    dataset = sweep.time(problem, Candidates.of(CANDIDATES))
    assert [timing.status for timing in dataset] == ["ok", "ok", "wrong", "wrong"]
    assert sweep.verified == {CORRECT: True, WRONG: False, IDLE: False}
