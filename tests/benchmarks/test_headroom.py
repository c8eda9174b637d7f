from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.forced import Forced
from tests.scripts import ROOT, load_script, run_script
from torch_diode.types.hardware import Hardware

RESULTS = ROOT / "benchmarks" / "results"


headroom = load_script("benchmarks", "headroom")


def row(aten: float, kernel: float) -> dict[str, Any]:
    return {"times": {"aten": [aten, 0.0], "triton::mm 16x16x16 g8 s1 w1": [kernel, 0.0]}}


def test_kernels_go_where_they_gain_most() -> None:
    rows = [row(2.0, 1.0), row(8.0, 1.0), row(1.0, 3.0), row(1.0, 1.0)]
    assert headroom.perfect(rows, 0.0) == pytest.approx(2.0)  # of 2, 8, 1 and 1
    assert headroom.perfect(rows, 0.25) == pytest.approx(2 ** (1 / 4))
    assert headroom.perfect(rows, 0.5) == pytest.approx(1.0)


def test_the_share_of_kernels_follows_from_their_compile_time() -> None:
    share = headroom.kernels_allowed(4.0)
    assert 4.0**share == pytest.approx(headroom.MOST_COMPILE)
    assert headroom.kernels_allowed(1.2) == 1.0


def test_the_model_chooses_without_inductor_as_in_the_live_run(h200: Hardware) -> None:
    run = json.loads((RESULTS / "selection_live.json").read_text())
    live = load_script("benchmarks", "_live")
    if run["model"] != live.model_digest("nvidia-h200"):
        pytest.skip("the run is of another model than the shipped one")
    found = headroom.scored_again(run["rows"], live.shipped(h200), h200)
    own = run["summary"]["all"]["diode over best"]
    assert [found[name] for name in ("problems", "over best", "p99", "most")] == pytest.approx(
        [own[name] for name in ("problems", "geomean", "p99", "most")]
    )
    assert found["ATen kept"] == pytest.approx(run["summary"]["chosen ATen"])


def test_alignment_depends_on_the_rows_in_memory() -> None:
    assert headroom.is_aligned("mm:5x16x8:float16:nn")
    assert not headroom.is_aligned("mm:5x16x12:float16:nn")  # A's rows have 24 bytes
    assert not headroom.is_aligned("mm:5x12x8:float16:nn")  # B's
    assert headroom.is_aligned("mm:5x12x8:float16:nt")
    assert headroom.is_aligned("mm:5x12x4:float32:nt")


def test_a_problem_of_several_runs_counts_with_its_last_times(h200: Hardware) -> None:
    key, other = "mm:512x512x512:bfloat16:nn", "mm:512x512x516:bfloat16:nn"
    kernel = "triton::mm 16x16x16 g8 s1 w1"
    rows = [
        {"problem": name, "times": {"aten": [aten, 0.0], kernel: [1.0, 0.0]}}
        for name, aten in ((key, 2.0), (other, 3.0), (key, 5.0))
    ]
    found = headroom.other_cuts(rows[2:], rows[:2], Forced(None), h200)
    numbers = {cut["of"]: (cut["problems"], cut["over best"]) for cut in found}
    assert numbers["runs before, rows of whole 16 bytes"] == (1, pytest.approx(2.0))
    assert numbers["runs before, other rows"] == (1, pytest.approx(3.0))
    assert numbers["all runs"] == (2, pytest.approx(15.0**0.5))
    assert numbers["the last run, problems of no other"][0] == 0


def test_the_committed_bounds_are_those_of_the_committed_results(tmp_path: Path) -> None:
    again = tmp_path / "headroom.json"
    ended = run_script("benchmarks/headroom.py", "--output", again)
    assert ended.returncode == 0, ended.stderr
    found, kept = (json.loads(p.read_text()) for p in (again, RESULTS / "headroom.json"))
    for name in ("single matmuls", "other draws", "models"):
        assert flat(found[name]) == pytest.approx(flat(kept[name]), rel=1e-3)
    single = found["single matmuls"]
    summary = json.loads((RESULTS / "selection_live.json").read_text())["summary"]
    aten, swept = summary["all"]["aten over best"], summary["swept"]["diode over best"]
    assert single["never wrong"][0]["over best"] == pytest.approx(aten["geomean"])
    assert single["the sweep"]["problems"] == swept["problems"]
    assert single["the sweep"]["torch-diode"] == pytest.approx(swept["geomean"])


def flat(value: Any) -> list[float]:
    """All numbers in it, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in flat(part)]
    return [value] if isinstance(value, float | int) else []
