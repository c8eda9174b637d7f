"""The fidelity workflow without a GPU: its plan, its processes, its table."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.scripts import ROOT, load_script, run_inside
from torch_diode.collection.timers.timer import Measurement
from torch_diode.collection.workers.pool import WorkerPool
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")

VALIDATION = ROOT / "diode_datasets/matmul/nvidia-h200/validation/full-2.parquet"


@pytest.fixture(scope="module")
def workflow():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
        patch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        return load_script("workflows", "measure_fidelity")


def test_problems_are_balanced_and_the_same_for_the_same_seed(workflow, h200):
    problems = workflow.drawn_problems(56, 0, h200)
    assert problems == workflow.drawn_problems(56, 0, h200)
    assert problems != workflow.drawn_problems(56, 1, h200)
    assert len(set(problems)) == 56
    sizes = Counter(workflow.size_class(problem, h200) for problem in problems)
    assert sizes == {"tiny": 14, "small": 14, "medium": 14, "large": 14}
    assert {problem.op for problem in problems} == {"mm", "addmm", "bmm", "baddbmm"}
    assert {problem.layout for problem in problems} == {"nn", "nt", "tn"}
    precisions = {problem.precision for problem in problems}
    assert precisions == {"bfloat16", "float16", "float32", "tf32"}


def bench(_: Any) -> Callable[[Any], Any]:
    """A timing process with made-up times, 1.5 times as long for the sweep's kernels."""
    from _fidelity_bench import STATIC, SWEEP, timing_of

    def answer(request: Any) -> Any:
        def timed(method: str, candidate: Any, factor: float) -> Any:
            time_us = factor * (10 + len(str(candidate)) + candidate.config.block_m)
            measured = Measurement(time_us, 0.01, 7)
            problem = request.plan.problem
            return timing_of("nvidia-h200", problem, candidate, method, "ok", measured, {})

        static = [timed(STATIC, kernel.candidate, 1.0) for kernel in request.kernels]
        return static + [timed(SWEEP, candidate, 1.5) for candidate, _ in request.specs]

    return answer


def run_of(workflow, h200: Hardware, *options: str, seconds: float = 120) -> Any:
    given = workflow._parser().parse_args([*options, "--problems", "2", "--processes", "1"])
    return workflow.make_run(given, h200, time.monotonic() + seconds)


@pytest.fixture
def own_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


@pytest.mark.usefixtures("own_caches")
def test_a_run_writes_both_files_and_the_table_needs_nothing_else(
    workflow, h200, tmp_path, monkeypatch
):
    """Two problems lowered and compiled by real processes."""
    largest = {"float32": (2**14, 2**14), "": (2**15, 2**15)}
    monkeypatch.setattr(sys.modules["_fidelity_plan"], "BIGGEST_TILE", largest)
    run = run_of(workflow, h200, "--output", str(tmp_path), "--configs", "6")
    with WorkerPool[Any, Any]([bench]) as benches:
        run.go(benches)
    assert run.faults == {}
    assert run.compiled_kernels == {workflow.STATIC: 12, workflow.SWEEP: len(run.specs())}
    table = tmp_path / "table.json"
    files = [tmp_path / f"{name}.parquet" for name in ("static", "sweep")]
    ended = run_inside("workflows/measure_fidelity.py", "--analyse", *files, "--json", table)
    assert ended.returncode == 0, ended.stderr
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("all ")]
    name, problems, timings, correlation, _, bias, *_ = line.split()
    assert (name, problems, timings) == ("all", "2", "12")
    assert (float(correlation), float(bias)) == (1.0, pytest.approx(1 / 1.5, abs=1e-3))
    assert table.exists()


def test_a_sweep_without_configs_is_refused(workflow, h200, tmp_path):
    data = read_dataset(VALIDATION).filter(template="aten")
    assert len(data) > 0
    write_dataset(data, tmp_path / "aten.parquet")
    with pytest.raises(EmptySelectionError, match="no timings of Triton configs"):
        run_of(workflow, h200, "--sweep", str(tmp_path / "aten.parquet"))
