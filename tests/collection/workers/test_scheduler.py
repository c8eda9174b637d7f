"""Scheduling of timing processes on the CPU, including processes that die.

Candidates have real kernel specs; they launch ATen, or end their process.
"""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.collection.crashing_kernels import CrashingSettings, InterruptedSettings
from torch_diode import Candidate, Candidates, MMShape, TritonGEMMConfig
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import Group
from torch_diode.collection.workers.pool import WorkerError
from torch_diode.collection.workers.scheduler import Scheduler, TimedProblem
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware import detect

ATEN = Candidate("aten")
PROBLEMS = [MMShape("mm", 32 * i, 64, 64, dtype="float32") for i in range(1, 7)]
CONFIGS = [Candidate("triton::mm", TritonGEMMConfig(m, 32, 32)) for m in (16, 32, 64, 128)]


def library() -> KernelLibrary:
    pytest.importorskip("triton")
    from torch_diode.integration.capture.template_source import template_source

    return KernelLibrary(template_source, 0)


def crashing_settings(tmp_path: Path, endings: Mapping[int, str]) -> CrashingSettings:
    # With a shared memory limit, which a CPU has not, the candidates count as compiled.
    hardware = replace(detect("cpu"), shared_memory_per_block=2**20)
    starts = str(tmp_path / "starts")
    return CrashingSettings(
        library(), hardware, {"torch": "2.13.0"}, endings=endings, starts=starts
    )


def group(problems: list[MMShape], candidates: list[Candidate]) -> Group:
    """A group without specs, so that nothing is compiled."""
    return Group("test", tuple((p, Candidates.of(candidates)) for p in problems), ())


def run_to_end(scheduler: Scheduler) -> list[TimedProblem]:
    timed_problems: list[TimedProblem] = []
    deadline = time.monotonic() + 120
    while scheduler.busy:
        assert time.monotonic() < deadline
        timed_problems += scheduler.advance(1)
    return timed_problems


def statuses(timed: TimedProblem) -> dict[Candidate, str]:
    return {timing.candidate: timing.status for timing in timed.dataset}


@pytest.mark.parametrize("ending", ["kill", "raise"])
def test_a_kernel_that_ends_its_process_costs_one_process_and_one_config(ending, tmp_path):
    with Scheduler(crashing_settings(tmp_path, {64: ending}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN, *CONFIGS]))
        timed_problems = run_to_end(scheduler)
        lost = scheduler.lost
    assert [timed.problem for timed in timed_problems] == PROBLEMS
    for timed in timed_problems:
        expected = dict.fromkeys([ATEN, *CONFIGS], "ok") | {CONFIGS[2]: "failed"}
        assert statuses(timed) == expected
    # Once among others, once alone to identify it; later problems exclude it.
    assert len(lost) == 2
    assert len((tmp_path / "starts").read_bytes()) == 3
    reasons = {"kill": "ended by SIGKILL", "raise": "illegal memory access"}
    assert all(reasons[ending] in reason for reason in lost)


def test_several_crashing_kernels_are_identified_one_by_one(tmp_path):
    with Scheduler(
        crashing_settings(tmp_path, {16: "kill", 128: "raise"}), ("cpu",), 1
    ) as scheduler:
        scheduler.add_group(group(PROBLEMS[:2], [*CONFIGS, ATEN]))
        timed_problems = run_to_end(scheduler)
    for timed in timed_problems:
        assert [s for _, s in sorted(statuses(timed).items(), key=str)].count("failed") == 2
        assert statuses(timed)[CONFIGS[0]] == statuses(timed)[CONFIGS[3]] == "failed"
    assert len(scheduler.lost) == 3


def test_a_process_killed_from_outside_loses_no_timing(tmp_path):
    """As by the out-of-memory killer: no candidate is at fault."""
    problems = [MMShape("mm", 8 * i, 512, 512, dtype="float32") for i in range(1, 25)]
    with Scheduler(crashing_settings(tmp_path, {}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(problems, [ATEN, *CONFIGS]))
        timed_problems = scheduler.advance(30)
        while not timed_problems:
            timed_problems += scheduler.advance(30)
        (pid,) = scheduler.pids()
        os.kill(pid, signal.SIGKILL)
        timed_problems += run_to_end(scheduler)
    assert sorted(timed.problem for timed in timed_problems) == sorted(problems)
    assert all(set(statuses(timed).values()) == {"ok"} for timed in timed_problems)
    assert scheduler.lost == ["ended by SIGKILL"]


def die_at_the_second(problem):
    if problem == PROBLEMS[1]:
        os.kill(os.getpid(), signal.SIGKILL)


def test_aten_can_be_the_crashing_candidate():
    settings = InterruptedSettings(CpuKernels(), detect("cpu"), {}, before=die_at_the_second)
    with Scheduler(settings, ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN]))
        timed_problems = run_to_end(scheduler)
    assert {t.problem: statuses(t)[ATEN] for t in timed_problems} == {
        p: "failed" if p == PROBLEMS[1] else "ok" for p in PROBLEMS
    }


class NeverStarting(TimingSettings):
    def sweep(self, outcomes, seed):
        os.kill(os.getpid(), signal.SIGKILL)


def test_processes_that_never_start_stop_the_run():
    with Scheduler(NeverStarting(CpuKernels(), detect("cpu"), {}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN]))
        with pytest.raises(WorkerError, match="before its first problem, 3 times in a row"):
            run_to_end(scheduler)


def wait_for_release(folder, problem):
    """Until it is released through a pipe in a folder."""
    (folder / "begun").write_bytes(b"x")
    (folder / "go").read_bytes()


def test_a_closed_scheduler_finishes_the_current_problem(tmp_path):
    for name in ("begun", "go"):
        os.mkfifo(tmp_path / name)
    wait = partial(wait_for_release, tmp_path)
    settings = InterruptedSettings(CpuKernels(), detect("cpu"), {}, before=wait)
    with Scheduler(settings, ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN]))
        scheduler.advance(0)
        (tmp_path / "begun").read_bytes()
        scheduler.close()
        (tmp_path / "go").write_bytes(b"x")
        timed_problems = run_to_end(scheduler)
        (unfinished,) = scheduler.unfinished_groups()
    assert [timed.problem for timed in timed_problems] == PROBLEMS[:1]
    assert unfinished.problems == 1
