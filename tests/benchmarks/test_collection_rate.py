"""The collection benchmark without its GPU: plans, counts and time limits."""

import pytest

from tests.scripts import load_script
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import exhaustive, libraries
from torch_diode.hardware import detect
from torch_diode.types.problem import MMShape

benchmark = load_script("benchmarks", "collection_rate")


def test_an_interrupted_search_counts_its_compiled_kernels():
    (problem,) = benchmark.problems(1, 0)
    state = {"choices": 1400, "compiled": 60, "benchmarked": 0, "seconds": 30.0}
    cut = benchmark.counted(problem, state, 41.0)
    assert (cut["timings_per_s"], cut["finished"]) == (2.0, False)
    done = benchmark.counted(problem, {**state, "benchmarked": 90, "finished": True}, 41.0)
    assert (done["timings_per_s"], done["finished"]) == (3.0, True)
    assert benchmark.counted(problem, {}, 41.0)["timings_per_s"] == 0.0


@pytest.fixture(scope="module")
def library(h200):
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


def test_a_sweep_counts_its_timings(monkeypatch):
    """On the CPU, with its libraries."""
    pytest.importorskip("triton")
    monkeypatch.setattr(benchmark, "exhaustive", libraries)
    wanted = [MMShape("mm", 8 * i, 24, 24, dtype="float32") for i in range(1, 6)]
    found = benchmark.sweep(wanted, detect("cpu"), seconds=120, processes=1, seed=0)
    assert found["timings"] == sum(len(libraries(detect("cpu"))(problem)) for problem in wanted)
    assert (found["problems"], found["without_a_time"]) == (5, 0)
    assert found["timings_per_s"] > 0
