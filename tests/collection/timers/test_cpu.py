from __future__ import annotations

import time

import pytest

from torch_diode.collection.kernels.library import KernelInfeasibleError
from torch_diode.collection.timers.cpu import CpuTimer, cpu_library
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape


def test_a_slow_call_takes_longer_than_a_quick_one():
    quick, slow = CpuTimer(cache_bytes=2048).measure([lambda: None, lambda: time.sleep(0.002)])
    assert 0 < quick.time_us < 1000 < 2000 <= slow.time_us


def test_no_sample_is_discarded():
    timer = CpuTimer(cache_bytes=2048)
    samples = timer.repeat([lambda: None] * 3, 5)
    assert [len(taken) for taken in samples] == [5, 5, 5]
    assert timer.stalled == 0


def test_triton_candidates_are_infeasible():
    with pytest.raises(KernelInfeasibleError, match="expected a GPU"):
        cpu_library().spec_for(
            MMShape("mm", 16, 16, 16), Candidate("triton::mm", TritonGEMMConfig(16, 16, 16))
        )
