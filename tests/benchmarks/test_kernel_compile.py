"""Triton's steps over the kernels torch-diode chooses, timed without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.dry_run import ROOT

pytest.importorskip("triton", reason="kernels are compiled by triton")

BENCHMARKS = ROOT / "benchmarks"


def test_the_kernels_of_the_live_run_are_compiled_step_by_step(tmp_path: Path) -> None:
    output = tmp_path / "found.json"
    options = ["--problems", "4", "--output", str(output)]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "kernel_compile.py"), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(output.read_text())
    run = json.loads((BENCHMARKS / "results" / "selection_live.json").read_text())
    if run["model"] == found["model"]:
        own = {row["problem"]: row["diode"] for row in run["rows"][:4] if row["diode"] != "aten"}
        assert {row["problem"]: row["candidate"] for row in found["rows"]} == own
    assert found["summary"]["problems"] == 4
    assert found["summary"]["kernels"] == len(found["rows"]) > 0
    for row in [*found["rows"], *found["loops"]]:
        assert all(seconds > 0 for seconds in row["seconds"].values())
        assert sum(row["seconds"].values()) == pytest.approx(row["whole"], abs=0.001)
    assert "problems get a kernel" in done.stdout
