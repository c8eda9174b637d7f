"""Triton's stages for the kernels torch-diode chooses, timed without a GPU."""

import json

import pytest

from tests.scripts import ROOT, run_script

pytest.importorskip("triton", reason="kernels are compiled by triton")


def test_the_kernels_of_the_live_run_are_compiled_by_stages(tmp_path):
    output = tmp_path / "results.json"
    ended = run_script("benchmarks/kernel_compile.py", "--problems", "2", "--output", output)
    assert ended.returncode == 0, ended.stderr
    results = json.loads(output.read_text())
    run = json.loads((ROOT / "benchmarks/results/selection_live.json").read_text())
    if run["model"] == results["model"]:
        own = {row["problem"]: row["diode"] for row in run["rows"][:2] if row["diode"] != "aten"}
        assert {row["problem"]: row["candidate"] for row in results["rows"]} == own
    assert results["summary"]["problems"] == 2
    assert results["summary"]["kernels"] == len(results["rows"]) > 0
    for row in [*results["rows"], *results["loops"]]:
        assert all(seconds > 0 for seconds in row["seconds"].values())
        assert sum(row["seconds"].values()) == pytest.approx(row["whole"], abs=0.001)
    assert "problems get a kernel" in ended.stdout
