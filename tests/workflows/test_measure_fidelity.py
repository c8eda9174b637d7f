"""The fidelity workflow without a GPU: its plan, its processes, its table."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from torch_diode.collection.timers.cuda import Measurement
from torch_diode.collection.workers.pool import WorkerPool
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.hardware import known
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.types.errors import EmptySelectionError

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")

SCRIPT = Path(__file__).parents[2] / "workflows" / "measure_fidelity.py"
H200 = known("nvidia-h200")
VALIDATION = SCRIPT.parents[1] / "diode_datasets/matmul/nvidia-h200/validation/full-2.parquet"


@pytest.fixture(scope="module")
def workflow() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        patch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
        patch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        return importlib.import_module("measure_fidelity")


@pytest.fixture(scope="module")
def planning(workflow) -> ModuleType:
    return sys.modules["_fidelity_plan"]


def test_problems_are_balanced_and_the_same_for_the_same_seed(workflow):
    problems = workflow.drawn_problems(56, 0, H200)
    assert problems == workflow.drawn_problems(56, 0, H200)
    assert problems != workflow.drawn_problems(56, 1, H200)
    assert len(set(problems)) == 56
    sizes = Counter(workflow.size_class(problem, H200) for problem in problems)
    assert sizes == {"tiny": 14, "small": 14, "medium": 14, "large": 14}
    assert {problem.op for problem in problems} == {"mm", "addmm", "bmm", "baddbmm"}
    assert {problem.layout for problem in problems} == {"nn", "nt", "tn"}
    precisions = {problem.precision for problem in problems}
    assert precisions == {"bfloat16", "float16", "float32", "tf32"}


def test_every_problem_has_its_candidates_aten_and_good_ones_among_them(workflow, planning):
    problems = workflow.drawn_problems(14, 0, H200)
    heuristic = AnalyticalHeuristic()
    for plan in workflow.make_plans(problems, H200, heuristic, 30, 0):
        assert len(plan.candidates) == len(set(plan.candidates)) == 31
        assert plan.candidates[0].template == "aten"
        order = planning._ranked(plan.problem, H200, heuristic)
        places = sorted(order.index(candidate) for candidate in plan.candidates[1:])
        assert places[:5] == list(range(5))
        assert places[-1] > len(order) / 2


def bench(_: Any) -> Callable[[Any], Any]:
    """A timing process that makes times up: half again as long by the sweep's kernels."""
    from _fidelity_bench import STATIC, SWEEP, timing_of

    def answer(order: Any) -> Any:
        def timed(method: str, candidate: Any, factor: float) -> Any:
            time_us = factor * (10 + len(str(candidate)) + candidate.config.block_m)
            measured = Measurement(time_us, 0.01, 7)
            problem = order.plan.problem
            return timing_of("nvidia-h200", problem, candidate, method, "ok", measured, {})

        static = [timed(STATIC, kernel.candidate, 1.0) for kernel in order.kernels]
        return static + [timed(SWEEP, candidate, 1.5) for candidate, _ in order.specs]

    return answer


@pytest.fixture
def output(workflow, planning, tmp_path, monkeypatch) -> Path:
    """What a run leaves: two problems lowered and compiled by real processes."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr(planning, "BIGGEST_TILE", {"float32": (2**14, 2**14), "": (2**15, 2**15)})
    folder = tmp_path / "out"
    folder.mkdir()
    options = ["--output", str(folder), "--problems", "2", "--configs", "6", "--processes", "1"]
    given = workflow._parser().parse_args(options)
    run = workflow.make_run(given, H200, time.monotonic() + 120)
    with WorkerPool[Any, Any]([bench]) as benches:
        run.go(benches)
    assert run.faults == {}
    assert run.compiled_kernels == {workflow.STATIC: 12, workflow.SWEEP: len(run.specs())}
    return folder


def test_a_run_writes_both_files_and_the_table_needs_nothing_else(output, tmp_path):
    table = tmp_path / "table.json"
    files = [str(output / f"{name}.parquet") for name in ("static", "sweep")]
    command = [sys.executable, str(SCRIPT), "--analyse", *files, "--json", str(table)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ended.returncode == 0, ended.stderr
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("all ")]
    name, problems, timings, correlation, _, bias, *_ = line.split()
    assert (name, problems, timings) == ("all", "2", "12")
    assert (float(correlation), float(bias)) == (1.0, pytest.approx(1 / 1.5, abs=1e-3))
    assert table.exists()


def test_a_sweeps_problems_are_timed_with_fixed_sizes_alone(workflow, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    data = read_dataset(VALIDATION)
    source = ["--sweep", str(VALIDATION), "--problems", "2", "--configs", "3"]
    given = workflow._parser().parse_args([*source, "--output", str(tmp_path), "--processes", "1"])
    run = workflow.make_run(given, H200, time.monotonic() + 120)
    assert run.specs() == set()
    with WorkerPool[Any, Any]([bench]) as benches:
        run.go(benches)
    assert run.faults == {}
    assert run.compiled_kernels == {workflow.STATIC: 6}
    assert not (tmp_path / "sweep.parquet").exists()
    timed = read_dataset(tmp_path / "static.parquet")
    assert set(timed.texts("method")) == {workflow.STATIC}
    problems = {timing.problem for timing in timed}
    assert len(problems) == 2
    for problem in problems:
        swept = {
            timing.candidate: timing.time_us
            for timing in data
            if timing.problem == problem
            and timing.time_us is not None
            and timing.candidate.template in ("triton::mm", "triton::bmm")
        }
        fastest = set(sorted(swept, key=swept.__getitem__)[:3])
        assert {t.candidate for t in timed if t.problem == problem} == fastest


def test_a_sweep_without_configs_is_refused(workflow, tmp_path):
    data = read_dataset(VALIDATION).filter(template="aten")
    assert len(data) > 0
    write_dataset(data, tmp_path / "aten.parquet")
    given = workflow._parser().parse_args(["--sweep", str(tmp_path / "aten.parquet")])
    with pytest.raises(EmptySelectionError, match="no timings of Triton configs"):
        workflow.make_run(given, H200, time.monotonic())


def test_when_the_time_is_up_what_there_is_is_saved(workflow, tmp_path):
    options = ["--output", str(tmp_path), "--problems", "2", "--configs", "6", "--processes", "1"]
    given = workflow._parser().parse_args([*options, "--minutes", "0"])
    saved: list[int] = []
    run = workflow.make_run(given, H200, time.monotonic())
    run.keep = lambda timings: saved.append(len(timings))
    with WorkerPool[Any, Any]([bench]) as benches:
        run.go(benches)
    assert saved == [0]


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    command = [sys.executable, str(SCRIPT), "--analyse", str(tmp_path / "a"), str(tmp_path / "b")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
