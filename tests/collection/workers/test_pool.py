"""Real processes that answer, raise, and are killed."""

from __future__ import annotations

import os
import signal
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
        if job == "pid":
            return os.getpid()
        if job == "killed":
            progress.set(7)
            os.kill(os.getpid(), signal.SIGKILL)
        if isinstance(job, Exception):
            raise job
        return job * 2

    return result


def events(pool: WorkerPool[Any, Any], count: int) -> list[JobResult[Any, Any] | WorkerDied[Any]]:
    found: list[JobResult[Any, Any] | WorkerDied[Any]] = []
    while len(found) < count:
        more = list(pool.read(30))
        assert more, "nothing happened within half a minute"
        found += more
    return found


def test_jobs_are_answered_in_order():
    with WorkerPool[int, int]([worker]) as pool:
        pool.submit(0, [1, 2, 3])
        assert pool.idle() == []
        assert [e.result for e in events(pool, 3) if isinstance(e, JobResult)] == [2, 4, 6]
        assert pool.idle() == [0]


def test_every_member_is_a_process_of_its_own():
    with WorkerPool[str, int]([worker, worker]) as pool:
        pool.submit(0, ["pid"])
        pool.submit(1, ["pid"])
        pids = {e.result for e in events(pool, 2) if isinstance(e, JobResult)}
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_a_killed_worker_tells_which_job_it_was_at_and_how_far():
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [1, "killed", 3, 4])
        first, lost = events(pool, 2)
        assert isinstance(first, JobResult)
        assert lost == WorkerDied(0, "killed", 7, (3, 4), "ended by SIGKILL")
        pool.submit(0, [5])
        (again,) = events(pool, 1)
    assert again == JobResult(0, 5, 10)


def test_a_worker_that_raises_an_error_of_torch_is_lost_with_its_words():
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [RuntimeError("CUDA error: an illegal memory access\nmore"), 2])
        (lost,) = events(pool, 1)
    assert isinstance(lost, WorkerDied)
    assert lost.progress == WORKING
    assert lost.reason == "RuntimeError: CUDA error: an illegal memory access"
    assert lost.pending == (2,)


def test_a_worker_that_cannot_start_says_so():
    def fails(progress: ProgressMarker) -> Callable[[Any], Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        return worker(progress)

    with WorkerPool[Any, Any]([fails]) as pool:
        pool.start()
        assert events(pool, 1) == [WorkerDied(0, None, STARTING, (), "ended by SIGKILL")]


def test_a_fault_with_a_sentence_of_its_own_is_raised_here():
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [MissingPartError("no such part")])
        with pytest.raises(MissingPartError, match="no such part"):
            events(pool, 1)
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [OSError(28, "No space left on device", "/cache/kernel")])
        with pytest.raises(FileFaultError, match="/cache/kernel: No space left on device"):
            events(pool, 1)


def test_a_mistake_of_our_own_stops_the_run(capfd):
    with WorkerPool[Any, Any]([worker]) as pool:
        pool.submit(0, [TypeError("a mistake")])
        with pytest.raises(WorkerError, match="ended with the error printed above"):
            events(pool, 1)
    assert "TypeError: a mistake" in capfd.readouterr().err


def test_a_halted_worker_answers_the_job_it_is_at_and_drops_the_rest():
    begun, begin = os.pipe()
    wait, go = os.pipe()

    def held(_: ProgressMarker) -> Callable[[Any], Any]:
        def result(job: int) -> int:
            os.write(begin, b"x")
            os.read(wait, 1)
            return job

        return result

    with WorkerPool[int, int]([held, worker]) as pool:
        pool.start()
        pool.submit(0, [1, 2, 3])
        os.read(begun, 1)
        pool.drop_pending()
        pool.submit(1, [4])
        os.write(go, b"xxx")
        found = []
        while pool.unfinished_jobs():
            found += pool.read(30)
    assert found == [JobResult(0, 1, 1)]


def test_stopped_workers_are_gone():
    pool = WorkerPool[Any, Any]([worker])
    pool.start()
    (pid,) = pool.pids()
    pool.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nothing_is_forked_from_a_process_that_has_used_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(ForkAfterCudaError):
        WorkerPool[Any, Any]([worker])
