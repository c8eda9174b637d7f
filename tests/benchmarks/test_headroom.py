import json
from typing import Any

import pytest

from tests.scripts import ROOT, load_script, run_inside

RESULTS = ROOT / "benchmarks" / "results"


headroom = load_script("benchmarks", "headroom")


def test_the_model_chooses_without_inductor_as_in_the_live_run(h200):
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


def test_the_committed_bounds_are_those_of_the_committed_results(tmp_path):
    again = tmp_path / "headroom.json"
    ended = run_inside("benchmarks/headroom.py", "--output", again)
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
