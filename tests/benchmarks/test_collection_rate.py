"""The collection benchmark without its GPU: what it plans, how it counts, how it ends what takes
too long."""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from types import ModuleType

import pytest

from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import exhaustive, vendor_only
from torch_diode.hardware import detect, known
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        return importlib.import_module("collection_rate")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
def test_what_takes_too_long_is_ended_with_all_it_has_started(benchmark, tmp_path):
    note = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {note}; wait"
    benchmark.run_for(3, ["sh", "-c", script], dict(os.environ))
    started = int(note.read_text())
    for _ in range(100):
        if not is_running(started):
            return
        time.sleep(0.1)
    pytest.fail("what it has started goes on")


def test_what_ends_in_time_is_let_be(benchmark, tmp_path):
    environment = {**os.environ, "NOTE": str(tmp_path / "done")}
    benchmark.run_for(600, ["sh", "-c", 'touch "$NOTE"'], environment)
    assert (tmp_path / "done").exists()


def test_a_search_that_was_cut_short_counts_what_it_had_compiled(benchmark):
    (problem,) = benchmark.problems(1, 0)
    state = {"choices": 1400, "compiled": 60, "benchmarked": 0, "seconds": 30.0}
    cut = benchmark.counted(problem, state, 41.0)
    assert (cut["timings_per_s"], cut["finished"]) == (2.0, False)
    done = benchmark.counted(problem, {**state, "benchmarked": 90, "finished": True}, 41.0)
    assert (done["timings_per_s"], done["finished"]) == (3.0, True)
    assert benchmark.counted(problem, {}, 41.0)["timings_per_s"] == 0.0


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    return known("nvidia-h200")


@pytest.fixture(scope="module")
def library(hardware: Hardware) -> KernelLibrary:
    pytest.importorskip("triton")
    from torch_diode.integration.capture.template_source import template_source

    return KernelLibrary(template_source, hardware.units)


def test_timings_need_a_part_of_the_kernels_only(benchmark, hardware, library):
    wanted = benchmark.problems(4, 0)
    groups = benchmark.in_parts(wanted, exhaustive(hardware), library, 40, 0)
    kernels = {spec for group in groups for spec in group.specs}
    assert len(kernels) > 1000
    # A candidate has two kernels where its block divides the K of some problems only.
    assert max(len(group.specs) for group in groups) <= 80
    assert [problem for problem, _ in groups[0].tasks] == wanted


def test_the_parts_have_every_candidate_of_every_problem_once(benchmark, hardware, library):
    wanted = benchmark.problems(4, 0)
    groups = benchmark.in_parts(wanted, exhaustive(hardware), library, 40, 0)
    for problem in wanted:
        parts = [candidates for group in groups for p, candidates in group.tasks if p == problem]
        found = [candidate for part in parts for candidate in part]
        assert len(found) == len(set(found))
        assert set(found) == set(exhaustive(hardware)(problem))
        assert all(len(part) for part in parts)


def test_a_run_cut_short_has_timed_candidates_of_all_kinds(benchmark, hardware, library):
    wanted = benchmark.problems(2, 0)
    groups = benchmark.in_parts(wanted, exhaustive(hardware), library, 40, 0)
    blocks = {c.config.block_m for _, part in groups[0].tasks for c in part if c.config}
    everything = {c.config.block_m for c in exhaustive(hardware)(wanted[0]) if c.config}
    assert blocks == everything


def test_a_problem_in_many_parts_is_one_problem_and_what_has_no_time_no_timing(benchmark):
    first, second = benchmark.problems(2, 0)
    parts = [
        Dataset.from_timings([timing(first, 5.0), timing(first, None, 32)]),
        Dataset.from_timings([timing(first, 7.0, 64)]),
        Dataset.from_timings([timing(second, 6.0)]),
    ]
    expected = {"problems": 2, "timings": 3, "without_a_time": 1}
    assert benchmark.counted_times(parts) == expected
    assert set(benchmark.counted_times([]).values()) == {0}


def timing(problem: MMShape, time_us: float | None, block: int = 16) -> Timing:
    candidate = Candidate("triton::mm", TritonGEMMConfig(block, 16, 16))
    if time_us is None:
        return Timing("nvidia-h200", problem, candidate, None, "out_of_resources", repeats=0)
    return Timing("nvidia-h200", problem, candidate, time_us)


def test_the_ratio_is_unknown_only_where_inductor_came_to_nothing(benchmark):
    found = {"timings_per_s": 20.0, "seconds": 85.0}
    nothing = {"timings_per_s": 0.0, "seconds": 0.0}
    assert benchmark.ratio_of({"timings_per_s": 4000.0}, [found]) == pytest.approx(200)
    assert benchmark.ratio_of({"timings_per_s": 0.0}, [found]) == 0.0
    assert benchmark.ratio_of({"timings_per_s": 4000.0}, [nothing]) is None
    assert benchmark.ratio_in_words(0.0, finished=True) == "ratio: 0"
    assert benchmark.ratio_in_words(200.0, finished=False) == "ratio: at least 200"
    assert "Inductor compiled nothing" in benchmark.ratio_in_words(None, finished=False)


def test_a_sweep_counts_what_it_has_timed(benchmark, monkeypatch):
    """On the CPU, where ATen is the only candidate."""
    pytest.importorskip("triton")
    monkeypatch.setattr(benchmark, "exhaustive", lambda _: vendor_only)
    wanted = [MMShape("mm", 8 * i, 24, 24, dtype="float32") for i in range(1, 6)]
    found = benchmark.sweep(wanted, detect("cpu"), seconds=120, processes=1, seed=0)
    assert (found["problems"], found["timings"], found["without_a_time"]) == (5, 5, 0)
    assert found["timings_per_s"] > 0
