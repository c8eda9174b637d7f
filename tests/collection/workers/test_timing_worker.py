"""Timing requests, processed without a process."""

import pytest

from torch_diode import Candidate, Candidates, MMShape, TritonGEMMConfig
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.workers.pool import WORKING
from torch_diode.collection.workers.timing_worker import TimingRequest, TimingSettings, TimingWorker
from torch_diode.hardware import detect
from torch_diode.types.errors import MissingPartError

PROBLEM = MMShape("mm", 24, 40, 56, dtype="float32")
ATEN, TRITON = Candidate("aten"), Candidate("triton::mm", TritonGEMMConfig(16, 16, 16))
BOTH = Candidates.of([ATEN, TRITON])


@pytest.fixture
def steps():
    return []


@pytest.fixture
def worker(steps):
    settings = TimingSettings(CpuKernels(), detect("cpu"), {"torch": "2.13.0"})
    return TimingWorker(settings, steps.append, seed=0)


def statuses(worker: TimingWorker, request: TimingRequest) -> dict[Candidate, str]:
    return {timing.candidate: timing.status for timing in worker.time(request).dataset}


@pytest.mark.parametrize(("one_by_one", "start"), [(False, 0), (True, 0), (True, 1), (True, 2)])
def test_every_candidate_has_a_timing_with_its_status(worker, steps, one_by_one, start):
    request = TimingRequest(PROBLEM, BOTH, one_by_one=one_by_one, start=start)
    assert statuses(worker, request) == {ATEN: "ok", TRITON: "out_of_resources"}
    assert steps == ([*range(start, 2), WORKING] if one_by_one else [])


def test_failed_candidates_are_recorded_and_not_run_again(worker):
    request = TimingRequest(PROBLEM, BOTH, one_by_one=True, start=1, failed=(0,))
    assert statuses(worker, request) == {ATEN: "failed", TRITON: "out_of_resources"}
    only = TimingRequest(PROBLEM, Candidates.of([ATEN]), one_by_one=True, start=1, failed=(0,))
    assert statuses(worker, only) == {ATEN: "failed"}


def test_too_little_memory_is_an_error(worker):
    huge = MMShape("mm", 2**21, 2**21, 8, dtype="float32")
    with pytest.raises(MissingPartError, match="not enough memory"):
        worker.time(TimingRequest(huge, BOTH))
