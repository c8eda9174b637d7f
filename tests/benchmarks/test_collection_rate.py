"""The collection benchmark without its GPU: how it ends what takes too long."""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from types import ModuleType

import pytest

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
