"""Worker processes that return results, raise, and are killed."""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torch_diode.collection.workers.pool import (
    STARTING,
    WORKING,
    ForkAfterCudaError,
    JobResult,
    ProgressMarker,
    WorkerDied,
    WorkerError,
    WorkerPool,
)
from torch_diode.types.errors import FileFaultError, MissingPartError


def worker(progress: ProgressMarker) -> Callable[[Any], Any]:
    def result(job: Any) -> Any:
        if job == "sum":
            torch.set_num_threads(2)
            return float(torch.ones(2**20).sum())
        if job == "pid":
            return os.getpid()
        if job == "killed":
            progress(7)
            os.kill(os.getpid(), signal.SIGKILL)
        if isinstance(job, Exception):
            raise job
        return job * 2

    return result


def events(pool: WorkerPool[Any, Any], count: int) -> list[JobResult[Any, Any] | WorkerDied[Any]]:
    results: list[JobResult[Any, Any] | WorkerDied[Any]] = []
    deadline = time.monotonic() + 60
    while len(results) < count:
        results += pool.read(1)
        assert time.monotonic() < deadline
    return results


def test_the_job_and_progress_of_a_killed_worker_are_known():
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [1, "killed", 3, 4])
        first, death = events(pool, 2)
        assert isinstance(first, JobResult)
        assert death == WorkerDied(0, "killed", 7, (3, 4), "ended by SIGKILL")
        pool.submit(0, [5])
        (again,) = events(pool, 1)
    assert again == JobResult(0, 5, 10)


def test_a_torch_error_ends_the_worker_with_its_message():
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [RuntimeError("CUDA error: an illegal memory access\nmore"), 2])
        (death,) = events(pool, 1)
    assert isinstance(death, WorkerDied)
    assert death.progress == WORKING
    assert death.reason == "RuntimeError: CUDA error: an illegal memory access"
    assert death.pending == (2,)


def fails(progress: ProgressMarker) -> Callable[[Any], Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return worker(progress)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_worker_that_cannot_start_is_reported(fresh):
    with WorkerPool[Any, Any]([fails], fresh) as pool:
        pool.start()
        assert events(pool, 1) == [WorkerDied(0, None, STARTING, (), "ended by SIGKILL")]


def test_errors_with_a_message_for_the_user_are_raised_in_the_parent():
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [MissingPartError("no such part")])
        with pytest.raises(MissingPartError, match="no such part"):
            events(pool, 1)
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [OSError(28, "No space left on device", "/cache/kernel")])
        with pytest.raises(FileFaultError, match="/cache/kernel: No space left on device"):
            events(pool, 1)


def test_an_unexpected_error_stops_the_run(capfd):
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [TypeError("a mistake")])
        with pytest.raises(WorkerError, match="ended with the error printed above"):
            events(pool, 1)
    assert "TypeError: a mistake" in capfd.readouterr().err


def test_progress_is_reported_with_its_job():
    reported: list[Any] = []

    def reporting(progress):
        return lambda job: progress({"half of": job})

    with WorkerPool[Any, Any]([reporting], on_progress=lambda *step: reported.append(step)) as pool:
        pool.submit(0, ["a", "b"])
        events(pool, 2)
    assert reported == [("a", {"half of": "a"}), ("b", {"half of": "b"})]


def test_a_fresh_worker_has_threads_of_its_own_where_the_parent_has_used_threads():
    """Forked from this process it would wait for ever for threads that it does not have."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.ones(2**20).sum()
        with WorkerPool[Any, Any]([worker], fresh=True) as pool:
            pool.submit(0, ["sum", "killed", 3])
            first, death = events(pool, 2)
            assert first == JobResult(0, "sum", float(2**20))
            assert death == WorkerDied(0, "killed", 7, (3,), "ended by SIGKILL")
            pool.submit(0, ["sum"])
            assert events(pool, 1) == [first]
    finally:
        torch.set_num_threads(before)


def test_a_worker_killed_within_a_long_message_is_reported():
    def long(_):
        def result(job):
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
            return bytes(2**24)

        return result

    with WorkerPool[Any, Any]([long]) as pool:
        pool.submit(0, ["a"])
        time.sleep(1.5)
        assert events(pool, 1) == [WorkerDied(0, "a", WORKING, (), "ended by SIGKILL")]


def test_dropping_pending_jobs_finishes_the_current_one():
    begun, begin = os.pipe()
    wait, go = os.pipe()

    def blocking(_):
        def result(job):
            os.write(begin, b"x")
            os.read(wait, 1)
            return job

        return result

    with WorkerPool[int, int]([blocking, worker]) as pool:
        pool.start()
        pool.submit(0, [1, 2, 3])
        os.read(begun, 1)
        pool.drop_pending()
        pool.submit(1, [4])
        os.write(go, b"xxx")
        results = []
        while pool.unfinished_jobs():
            results += pool.read(30)
    assert results == [JobResult(0, 1, 1)]


def test_stopped_workers_have_ended():
    pool = WorkerPool[Any, Any]([worker])
    pool.start()
    (pid,) = pool.pids()
    pool.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_that_has_used_cuda_cannot_fork_workers(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(ForkAfterCudaError):
        WorkerPool[Any, Any]([worker])
    WorkerPool[Any, Any]([worker], fresh=True)
