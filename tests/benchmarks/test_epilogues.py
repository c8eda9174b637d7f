"""The epilogue benchmark without its GPU: real decisions for the chip."""

import pytest

from tests.benchmarks.dry_run import dry_run
from torch_diode.integration.deciding.epilogue_cost import IN_L2, LAUNCH_US

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")


def test_epilogues_are_counted_and_constants_fitted(tmp_path):
    data, printed = dry_run("epilogues.py", tmp_path / "epilogues.json", "--problems", "10")
    assert len(data["rows"]) == 10
    for row in data["rows"]:
        assert row["counted_us"] > 0.5
        assert row["then"]
        assert row["with_over_best"] >= 1.0
    summary = data["summary"]
    assert summary["cases"] == summary["counted in"] == 10
    # Made-up times differ from the estimate by 1 us.
    fitted = summary["fitted"]
    assert fitted["LAUNCH_US"] == pytest.approx(LAUNCH_US + 1, abs=0.1)
    assert fitted["IN_L2"] == pytest.approx(IN_L2, abs=0.1)
    assert "chosen over the faster side" in printed
