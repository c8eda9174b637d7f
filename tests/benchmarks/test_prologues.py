"""The prologue benchmark without its GPU: kernels of both lowerings."""

import pytest

from tests.benchmarks.dry_run import dry_run

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")


def test_the_work_is_fused_or_a_separate_kernel(tmp_path):
    data, printed = dry_run("prologues.py", tmp_path / "prologues.json", "--problems", "4")
    assert [row["work"] for row in data["rows"]] == ["relu", "gelu", "scale", "copy"]
    for row in data["rows"]:
        assert row["kernels"] == {"taken": 1, "apart": 2}
    assert data["summary"]["all"]["taken over apart"] == pytest.approx(9 / 8)
    assert "taken over apart" in printed
