"""The model benchmark without its GPU: every architecture, tiny, on the CPU."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.rehearsal import rehearse


def test_every_model_runs_and_agrees_with_eager(tmp_path: Path) -> None:
    output = tmp_path / "models.json"
    data, printed = rehearse("models_live.py", output, "--modes", "reduce-overhead")
    names = {row["model"] for row in data["rows"]}
    assert len(names) == 7
    assert len(data["rows"]) == 28
    for row in data["rows"]:
        assert row["difference"] < 1e-5
        assert row["compile_s"] > 0
    assert set(data["summary"]["models"]) == names
    assert "geomean" in printed
