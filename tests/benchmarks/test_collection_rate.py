"""The collection benchmark without its GPU: plans, counts and time limits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.scripts import load_script
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import exhaustive, libraries
from torch_diode.hardware import detect
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

benchmark = load_script("benchmarks", "collection_rate")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
def test_a_command_over_its_time_limit_is_ended_with_its_children(tmp_path):
    note = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {note}; wait"
    benchmark.run_for(3, ["sh", "-c", script], dict(os.environ))
    started = int(note.read_text())
    for _ in range(100):
        if not is_running(started):
            return
        time.sleep(0.1)
    pytest.fail("its child still runs")


def test_an_interrupted_search_counts_its_compiled_kernels():
    (problem,) = benchmark.problems(1, 0)
    state = {"choices": 1400, "compiled": 60, "benchmarked": 0, "seconds": 30.0}
    cut = benchmark.counted(problem, state, 41.0)
    assert (cut["timings_per_s"], cut["finished"]) == (2.0, False)
    done = benchmark.counted(problem, {**state, "benchmarked": 90, "finished": True}, 41.0)
    assert (done["timings_per_s"], done["finished"]) == (3.0, True)
    assert benchmark.counted(problem, {}, 41.0)["timings_per_s"] == 0.0


@pytest.fixture(scope="module")
def library(h200: Hardware) -> KernelLibrary:
    pytest.importorskip("triton")
    from torch_diode.integration.capture.template_source import template_source

    return KernelLibrary(template_source, h200.units)


def test_parts_are_small_random_and_cover_every_candidate_once(h200, library):
    wanted = benchmark.problems(4, 0)
    groups = benchmark.in_parts(wanted, exhaustive(h200), library, 40, 0)
    assert len({spec for group in groups for spec in group.specs}) > 1000
    # A candidate has two kernels where its block divides the K of some problems only.
    assert max(len(group.specs) for group in groups) <= 80
    assert [problem for problem, _ in groups[0].tasks] == wanted
    for problem in wanted:
        parts = [candidates for group in groups for p, candidates in group.tasks if p == problem]
        timed = [candidate for part in parts for candidate in part]
        assert len(timed) == len(set(timed))
        assert set(timed) == set(exhaustive(h200)(problem))
        assert all(len(part) for part in parts)
    blocks = {c.config.block_m for _, part in groups[0].tasks for c in part if c.config}
    assert blocks == {c.config.block_m for c in exhaustive(h200)(wanted[0]) if c.config}


def test_a_problem_in_many_parts_counts_once_and_failures_are_no_timings():
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


def test_the_ratio_is_unknown_only_without_any_result_of_inductor():
    found = {"timings_per_s": 20.0, "seconds": 85.0}
    nothing = {"timings_per_s": 0.0, "seconds": 0.0}
    assert benchmark.ratio_of({"timings_per_s": 4000.0}, [found]) == pytest.approx(200)
    assert benchmark.ratio_of({"timings_per_s": 0.0}, [found]) == 0.0
    assert benchmark.ratio_of({"timings_per_s": 4000.0}, [nothing]) is None
    assert benchmark.ratio_in_words(0.0, finished=True) == "ratio: 0"
    assert benchmark.ratio_in_words(200.0, finished=False) == "ratio: at least 200"
    assert "Inductor compiled nothing" in benchmark.ratio_in_words(None, finished=False)


def test_a_sweep_counts_its_timings(monkeypatch):
    """On the CPU, with its libraries."""
    pytest.importorskip("triton")
    monkeypatch.setattr(benchmark, "exhaustive", libraries)
    wanted = [MMShape("mm", 8 * i, 24, 24, dtype="float32") for i in range(1, 6)]
    found = benchmark.sweep(wanted, detect("cpu"), seconds=120, processes=1, seed=0)
    assert found["timings"] == sum(len(libraries(detect("cpu"))(problem)) for problem in wanted)
    assert (found["problems"], found["without_a_time"]) == (5, 0)
    assert found["timings_per_s"] > 0
