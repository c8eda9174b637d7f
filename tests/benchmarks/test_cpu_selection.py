"""The benchmark of single matmuls on a CPU: its sample, a tiny real run, and its summary."""

from collections import Counter
from typing import Any

import pytest

from tests.benchmarks.dry_run import dry_run
from tests.scripts import load_script

problems = load_script("benchmarks", "_cpu_problems")
selection = load_script("benchmarks", "_cpu_selection")


def test_a_sample_is_the_same_again_and_has_every_kind():
    found = problems.posed_problems(60, seed=1)
    assert found == problems.posed_problems(60, seed=1)
    assert found[:20] == problems.posed_problems(20, seed=1)
    kinds = Counter((posed.frozen, posed.problem.layout) for posed in found)
    assert set(kinds) == {(False, "nn"), (False, "nt"), (False, "tn"), (True, "nn"), (True, "nt")}
    assert max(kinds.values()) == min(kinds.values())
    origins = Counter(posed.origin for posed in found)
    assert origins["log-normal"] == origins["real models"]
    assert {posed.problem.dtype for posed in found} == {"float32", "bfloat16"}


@pytest.mark.slow
def test_every_way_is_compiled_checked_and_timed(tmp_path):
    output = tmp_path / "selection.json"
    options = ("--rule", "--threads", "1", "--seed", "1", "--problems", "1")
    data, printed = dry_run("cpu_selection.py", output, *options)
    (row,) = data["rows"]
    assert row["wrong"] == []
    assert {"plain", "torch-diode"} <= set(row["times"])
    assert set(row["compile_s"]) == set(row["times"])
    assert all(time > 0 for time, _ in row["times"].values())
    assert "torch-diode over best" in printed
    assert output.with_suffix(".svg").exists()


def row(frozen: bool = False, **times: float) -> dict[str, Any]:
    return {
        "problem": "mm:8x8x8:float32:nn",
        "threads": 2,
        "frozen": frozen,
        "times": {name.replace("_us", ""): [time, 0.0] for name, time in times.items()},
        "compile_s": {"plain": 0.1},
        "decision_us": None,
        "wrong": [],
    }


def test_the_best_is_the_fastest_of_all_and_every_kind_has_its_own_mean():
    one = {**row(plain=4.0, onednn=2.0), "times": {"plain": [4.0, 0], "torch-diode": [2.0, 0]}}
    other = {**row(frozen=True), "times": {"plain": [3.0, 0], "torch-diode": [3.0, 0]}}
    found = selection.summary([one, other])
    assert found["2 threads, unfrozen"]["torch-diode over best"]["geomean"] == 1.0
    assert found["2 threads, unfrozen"]["plain over best"]["geomean"] == 2.0
    assert found["2 threads, frozen, float32"]["torch-diode over plain"]["problems"] == 1
