"""A sweep on the CPU with its processes and store."""

import time
from functools import partial

import pytest

from tests.collection.crashing_kernels import InterruptedSettings
from torch_diode.collection import plan
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.sweep_run import SweepRun
from torch_diode.collection.workers.scheduler import GroupReport
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware import detect
from torch_diode.types.problem import MMShape

CPU = detect("cpu")
PROBLEMS = [
    MMShape(op, 24, 40, 56, dtype="float32", transpose_b=True)
    for op in ("mm", "addmm", "bmm", "baddbmm")
]


def sweep_run(problems: list[MMShape], devices: tuple[str, ...] = ("cpu",)) -> SweepRun:
    groups = plan.plan(problems, plan.libraries(CPU), CpuKernels())
    return SweepRun(groups, TimingSettings(CpuKernels(), CPU, {"torch": "2.13.0"}), devices)


@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cpu")])
def test_groups_are_timed_stored_and_reported(devices, tmp_path):
    reports: list[GroupReport] = []
    run = sweep_run(PROBLEMS, devices)
    with TimingStore(tmp_path) as store:
        run.run(store, 1, time.monotonic() + 60, reports.append)
        assert store.done() == {(CPU.name, CPU.threads, problem) for problem in PROBLEMS}
    assert sorted(report.name for report in reports) == sorted(g.name for g in run.groups)
    assert [report.problems for report in reports] == [1] * 4
    assert all(report.timed_s > 0 for report in reports)
    assert run.lost == run.left_out == []


def wait_until(moment, problem):
    time.sleep(max(moment - time.monotonic(), 0))


def test_at_the_deadline_the_current_problem_is_finished_and_stored(tmp_path):
    problems = [MMShape("mm", 8 * i, 24, 24, dtype="float32") for i in range(1, 20)]
    groups = plan.plan(problems, plan.libraries(CPU), CpuKernels())
    reports: list[GroupReport] = []
    deadline = time.monotonic() + 6
    wait = partial(wait_until, deadline + 1)
    settings = InterruptedSettings(CpuKernels(), CPU, {"torch": "2.13.0"}, before=wait)
    run = SweepRun(groups[:1], settings, ("cpu",))
    with TimingStore(tmp_path) as store:
        run.run(store, 1, deadline, reports.append)
        assert list(tmp_path.glob("shard-*.parquet")), "flushed"
        assert store.done() == {(CPU.name, CPU.threads, groups[0].tasks[0][0])}
    assert [(report.name, report.problems) for report in reports] == [(groups[0].name, 1)]
