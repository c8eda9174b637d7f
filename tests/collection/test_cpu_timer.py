from __future__ import annotations

import time

import pytest

from torch_diode.collection import plan
from torch_diode.collection.cpu_timer import CpuTimer, cpu_library, time_on_cpu
from torch_diode.collection.kernels import KernelInfeasibleError
from torch_diode.collection.store import TimingStore
from torch_diode.hardware import detect
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape


def test_the_wall_clock_tells_a_slow_call_from_a_quick_one():
    quick, slow = CpuTimer(flush_bytes=4096).measure([lambda: None, lambda: time.sleep(0.002)])
    assert 0 < quick.time_us < 1000 < 2000 <= slow.time_us


def test_nothing_is_thrown_away():
    timer = CpuTimer(flush_bytes=4096)
    samples = timer.repeat([lambda: None] * 3, 5)
    assert [len(taken) for taken in samples] == [5, 5, 5]
    assert (timer.stalled, timer.sampled) == (0, 15)


def test_triton_candidates_do_not_run():
    with pytest.raises(KernelInfeasibleError, match="expected a GPU"):
        cpu_library().spec_for(
            MMShape("mm", 16, 16, 16), Candidate("triton::mm", TritonGEMMConfig(16, 16, 16))
        )


@pytest.mark.parametrize("op", ["mm", "addmm", "bmm", "baddbmm"])
def test_groups_are_timed_and_kept(op, tmp_path):
    problem = MMShape(op, 24, 40, 56, dtype="float32", transpose_b=True)
    groups = plan.plan([problem], plan.vendor_only, cpu_library())
    hardware = detect("cpu")
    with TimingStore(tmp_path) as store:
        time_on_cpu(groups, hardware, {"torch": "2.13.0"}, store)
        assert store.done() == {(hardware.name, problem)}
