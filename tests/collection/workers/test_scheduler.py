"""Timing processes that time, die and are replaced; all of it for real, on the CPU.

Candidates are real ones with real kernel specs; what they launch is ATen, or their process's end.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.collection.crashing_kernels import CrashingSettings
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import Group
from torch_diode.collection.timers.cpu import cpu_library
from torch_diode.collection.workers.pool import WorkerError
from torch_diode.collection.workers.scheduler import Scheduler, TimedProblem
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware import detect
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.problem import MMShape

ATEN = Candidate("aten")
PROBLEMS = [MMShape("mm", 32 * i, 64, 64, dtype="float32") for i in range(1, 7)]
CONFIGS = [Candidate("triton::mm", TritonGEMMConfig(m, 32, 32)) for m in (16, 32, 64, 128)]


def library() -> KernelLibrary:
    pytest.importorskip("triton")
    from torch_diode.integration.capture.template_source import template_source

    return KernelLibrary(template_source, 0)


def setting(tmp_path: Path, endings: Mapping[int, str]) -> CrashingSettings:
    # No shared memory limit is known on a CPU: with one, the candidates pass as compiled.
    hardware = replace(detect("cpu"), shared_memory_per_block=2**20)
    starts = str(tmp_path / "starts")
    return CrashingSettings(library(), hardware, {"torch": "2.13.0"}, endings=endings, starts=starts)


def group(problems: list[MMShape], candidates: list[Candidate]) -> Group:
    """Without specs: nothing is to be compiled here."""
    return Group("test", tuple((p, Candidates.of(candidates)) for p in problems), ())


def everything(scheduler: Scheduler) -> list[TimedProblem]:
    found: list[TimedProblem] = []
    deadline = time.monotonic() + 120
    while scheduler.busy:
        assert time.monotonic() < deadline
        found += scheduler.advance(1)
    return found


def statuses(timed: TimedProblem) -> dict[Candidate, str]:
    assert timed.dataset is not None
    return {timing.candidate: timing.status for timing in timed.dataset}


@pytest.mark.parametrize("ending", ["kill", "raise"])
def test_a_kernel_that_ends_its_process_costs_one_process_and_one_config(ending, tmp_path):
    with Scheduler(setting(tmp_path, {64: ending}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN, *CONFIGS]))
        found = everything(scheduler)
        lost = scheduler.lost
    assert [timed.problem for timed in found] == PROBLEMS
    for timed in found:
        expected = dict.fromkeys([ATEN, *CONFIGS], "ok") | {CONFIGS[2]: "failed"}
        assert statuses(timed) == expected
    # Once in the crowd, once alone to be found; all later problems know.
    assert len(lost) == 2
    assert len((tmp_path / "starts").read_bytes()) == 3
    words = {"kill": "ended by SIGKILL", "raise": "illegal memory access"}
    assert all(words[ending] in reason for reason in lost)


def test_several_such_kernels_are_found_one_after_the_other(tmp_path):
    with Scheduler(setting(tmp_path, {16: "kill", 128: "raise"}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS[:2], [*CONFIGS, ATEN]))
        found = everything(scheduler)
    for timed in found:
        assert [s for _, s in sorted(statuses(timed).items(), key=str)].count("failed") == 2
        assert statuses(timed)[CONFIGS[0]] == statuses(timed)[CONFIGS[3]] == "failed"
    assert len(scheduler.lost) == 3


def test_all_processes_work_and_nothing_is_done_twice(tmp_path):
    problems = [MMShape("mm", 8 * i, 64, 64, dtype="float32") for i in range(1, 41)]
    with Scheduler(setting(tmp_path, {}), ("cpu", "cpu"), 1) as scheduler:
        scheduler.add_group(group(problems, [ATEN]))
        found = everything(scheduler)
    assert sorted(timed.problem for timed in found) == sorted(problems)
    assert len((tmp_path / "starts").read_bytes()) == 2
    assert not scheduler.lost


def test_a_process_killed_from_outside_costs_nothing(tmp_path):
    """As the kernel's out-of-memory killer does it: no candidate is to blame."""
    problems = [MMShape("mm", 8 * i, 512, 512, dtype="float32") for i in range(1, 100)]
    with Scheduler(setting(tmp_path, {}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(problems, [ATEN, *CONFIGS]))
        found = scheduler.advance(30)
        while not found:
            found += scheduler.advance(30)
        (pid,) = scheduler.pids()
        os.kill(pid, signal.SIGKILL)
        found += everything(scheduler)
    assert sorted(timed.problem for timed in found) == sorted(problems)
    assert all(set(statuses(timed).values()) == {"ok"} for timed in found)
    assert scheduler.lost == ["ended by SIGKILL"]


def test_aten_itself_can_be_the_one(tmp_path):

    class Broken(TimingSettings):
        def sweep(self, outcomes, seed):
            sweep = super().sweep(outcomes, seed)
            whole = sweep.time

            def time_or_die(problem, candidates):
                if problem == PROBLEMS[1]:
                    os.kill(os.getpid(), signal.SIGKILL)
                return whole(problem, candidates)

            sweep.time = time_or_die
            return sweep

    with Scheduler(Broken(cpu_library(), detect("cpu"), {}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN]))
        found = everything(scheduler)
    assert {t.problem: statuses(t)[ATEN] for t in found} == {
        p: "failed" if p == PROBLEMS[1] else "ok" for p in PROBLEMS
    }


def test_processes_that_never_start_stop_the_run():
    class Dead(TimingSettings):
        def sweep(self, outcomes, seed):
            os.kill(os.getpid(), signal.SIGKILL)

    with Scheduler(Dead(cpu_library(), detect("cpu"), {}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN]))
        with pytest.raises(WorkerError, match="before its first problem, 3 times in a row"):
            everything(scheduler)


def test_a_closed_workshop_finishes_the_problem_it_is_at():
    begun, begin = os.pipe()
    wait, go = os.pipe()

    class Held(TimingSettings):
        def sweep(self, outcomes, seed):
            sweep = super().sweep(outcomes, seed)
            whole = sweep.time

            def time_when_told(problem, candidates):
                os.write(begin, b"x")
                os.read(wait, 1)
                return whole(problem, candidates)

            sweep.time = time_when_told
            return sweep

    with Scheduler(Held(cpu_library(), detect("cpu"), {}), ("cpu",), 1) as scheduler:
        scheduler.add_group(group(PROBLEMS, [ATEN]))
        scheduler.advance(0)
        os.read(begun, 1)
        scheduler.close()
        os.write(go, b"x" * len(PROBLEMS))
        found = everything(scheduler)
        (run,) = scheduler.unfinished_runs()
    assert [timed.problem for timed in found] == PROBLEMS[:1]
    assert (run.problems, run.left) == (1, len(PROBLEMS) - 1)
