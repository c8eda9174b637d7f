"""The selection benchmark's run, with real processes that answer, fail and hang."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from tests.scripts import load_script
from torch_diode.collection.workers.pool import ProgressMarker, WorkerPool
from torch_diode.types.problem import MMShape
from workflows.measuring.jobs import catch_job_errors

running = load_script("benchmarks", "_selection_run")
TIMES = {"aten": (10.0, 0.01)}


def run_of(sizes: list[int], **settings: Any) -> Any:
    from _selection import Posed

    problems = [Posed(MMShape("mm", size, 64, 64), "real models") for size in sizes]
    stored: list[list[str]] = []
    run = running.Run(problems, {}, lambda: stored.append(list(run.rows)), **settings)
    run.stored = stored
    return run


def bench(_: ProgressMarker) -> Callable[[Any], Any]:
    """Fails, dies or hangs by the problem's M."""

    def answer(request: Any) -> Any:
        size = request.problem.M
        if size == 13:
            raise ValueError("unlucky")
        if size == 66:
            os.kill(os.getpid(), signal.SIGKILL)
        if size == 99:
            time.sleep(1e6)
        kind = type(request).__name__
        if kind == "Clean":
            return {"times": dict(TIMES), "faults": {}}
        if kind == "Cold":
            return {"cold": {"plain": {"compile_s": 1.0}}}
        return {"ratios": {"triton::mm": (1.5, 0.02)}, "max-autotune": {"pick": "triton::mm"}}

    return catch_job_errors(answer)


def at(rows: dict[str, Any], size: int) -> dict[str, Any]:
    (row,) = [row for key, row in rows.items() if key.startswith(f"mm:{size}x")]
    return row


def test_a_job_that_fails_or_ends_its_process_does_not_affect_others():
    run = run_of([13, 66, 32], end=time.monotonic() + 100)
    with WorkerPool[Any, Any]([bench]) as benches:
        run.one_by_one("cold", 3, benches, time.monotonic() + 100)
    assert "cold" in at(run.rows, 32)
    assert at(run.rows, 13)["fault"] == "Cold: ValueError: unlucky"
    assert run.faults == {"Cold: ValueError: unlucky": 1, "bench: ended by SIGKILL": 1}
    assert run.stored


def test_the_run_ends_at_its_deadline():
    run = run_of([99, 32], end=time.monotonic() + 1)
    with WorkerPool[Any, Any]([bench]) as benches:
        run.one_by_one("cold", 2, benches, run.end)
        assert benches.unfinished_jobs() == []
    assert run.faults == {"bench: unfinished": 1}
    assert not any("cold" in row for row in run.rows.values())
