"""The CPU timer, on calls that take a known time and on a machine that is busy."""

import time

import pytest

from torch_diode import Candidate, DiodeError, MMShape, TritonGEMMConfig
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.kernels.outcome import KernelInfeasibleError
from torch_diode.collection.timers import cpu
from torch_diode.collection.timers.cpu import CpuTimer, lower_mean


class Watch:
    """A watch that finds the first few windows disturbed."""

    def __init__(self, disturbed: int = 0) -> None:
        self.left = disturbed
        self.reason = "other programs use 2.0 cores"

    def disturbed(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def restart(self) -> None:
        pass


def timer(disturbed: int = 0) -> CpuTimer:
    return CpuTimer(cache_bytes=4096, watch=Watch(disturbed))


def test_a_slow_call_takes_longer_than_a_quick_one():
    quick, slow = timer().measure([lambda: None, lambda: time.sleep(0.002)])
    assert 0 < quick.time_us < 1000 < 2000 <= slow.time_us


def test_samples_of_a_disturbed_window_are_discarded_and_taken_again():
    busy = timer(disturbed=2)
    samples = busy.repeat([lambda: None] * 3, 5)
    assert [len(taken) for taken in samples] == [5, 5, 5]
    assert busy.stalled == 30


def test_a_machine_that_stays_busy_is_an_error(monkeypatch):
    monkeypatch.setattr(cpu, "_LONGEST_PAUSE_S", 0)
    with pytest.raises(DiodeError, match="other programs use 2"):
        timer(disturbed=100).repeat([lambda: None], 1)


def test_the_caches_are_prepared_before_each_round():
    calls = []
    timed = timer()
    timed.keep_cached(lambda: calls.append("warm"))
    timed.repeat([lambda: calls.append("run")], 2)
    assert calls == ["warm", "run"] * 2


def test_refined_calls_stay_together_until_the_best_is_known():
    times = [0.0010, 0.0013, 0.0080]
    calls = [lambda s=s: time.sleep(s) for s in times]
    timed = timer()
    first = timed.measure(calls)
    close, behind, far = timed.refine(calls, first, band=1e-9)
    assert close.repeats == behind.repeats == 400, "what ran beside a call decides its cache"
    assert far == first[2]


def test_a_time_is_the_mean_of_the_lower_half():
    measured = lower_mean([10.0, 11.0, 12.0, 13.0, 40.0, 80.0])
    assert (measured.time_us, measured.repeats) == (11.0, 6)


def test_triton_candidates_are_infeasible():
    with pytest.raises(KernelInfeasibleError, match="expected a device that runs it"):
        CpuKernels().spec_for(
            MMShape("mm", 16, 16, 16), Candidate("triton::mm", TritonGEMMConfig(16, 16, 16))
        )


def test_a_quick_call_that_was_disturbed_at_first_is_timed_again():
    calls = 0

    def quick() -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.02 if calls < 3 else 0.0002)

    found, steady = timer().measure([quick, lambda: time.sleep(0.002)])
    assert found.time_us < steady.time_us
