"""What is left to gain: bounds that follow from the committed results."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.rehearsal import ROOT

RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture
def headroom(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("headroom")


def row(aten: float, kernel: float) -> dict[str, Any]:
    return {"times": {"aten": [aten, 0.0], "triton::mm 16x16x16 g8 s1 w1": [kernel, 0.0]}}


def test_kernels_go_where_they_gain_most(headroom: Any) -> None:
    rows = [row(2.0, 1.0), row(8.0, 1.0), row(1.0, 3.0), row(1.0, 1.0)]
    assert headroom.perfect(rows, 0.0) == pytest.approx(2.0)  # of 2, 8, 1 and 1
    assert headroom.perfect(rows, 0.25) == pytest.approx(2 ** (1 / 4))
    assert headroom.perfect(rows, 0.5) == pytest.approx(1.0)


def test_what_may_be_compiled_follows_from_what_it_costs(headroom: Any) -> None:
    share = headroom.kernels_allowed(4.0)
    assert 4.0**share == pytest.approx(headroom.MOST_COMPILE)
    assert headroom.kernels_allowed(1.2) == 1.0


def test_the_committed_bounds_are_those_of_the_committed_results(tmp_path: Path) -> None:
    again = tmp_path / "headroom.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "headroom.py"), "--output", str(again)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found, kept = (json.loads(p.read_text()) for p in (again, RESULTS / "headroom.json"))
    for name in ("single matmuls", "models"):
        assert flat(found[name]) == pytest.approx(flat(kept[name]), rel=1e-3)
    single = found["single matmuls"]
    summary = json.loads((RESULTS / "selection_live.json").read_text())["summary"]
    aten, own, swept = (
        summary["all"]["aten over best"],
        summary["all"]["diode over best"],
        summary["swept"]["diode over best"],
    )
    assert single["never wrong"][0]["over best"] == pytest.approx(aten["geomean"])
    assert single["torch-diode"]["as it is"] == pytest.approx(own["geomean"])
    assert single["the sweep"]["problems"] == swept["problems"]
    assert single["the sweep"]["torch-diode"] == pytest.approx(swept["geomean"])


def test_results_of_another_model_say_nothing(headroom: Any, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"model": "that one"}')
    with pytest.raises(SystemExit, match="got results of model that one; expected this one"):
        headroom.read(path, "this one")


def flat(value: Any) -> list[float]:
    """All numbers in it, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in flat(part)]
    return [value] if isinstance(value, float | int) else []
