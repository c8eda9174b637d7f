"""The prologue benchmark without its GPU: what Inductor makes of it, with and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.dry_run import dry_run

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")


def test_work_is_in_the_template_or_apart(tmp_path: Path) -> None:
    data, printed = dry_run("prologues.py", tmp_path / "prologues.json", "--problems", "4")
    assert [row["work"] for row in data["rows"]] == ["relu", "gelu", "scale", "copy"]
    for row in data["rows"]:
        assert row["kernels"] == {"taken": 1, "apart": 2}
    assert data["summary"]["all"]["taken over apart"] == pytest.approx(9 / 8)
    assert "taken over apart" in printed
