"""The demo's part for a machine with a GPU."""

import pytest
import torch

from tests.gpu.programs import ROOT, run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_each_variant_compiles_runs_and_is_timed():
    folder = str(ROOT / "workflows")
    program = f"import sys; sys.path.insert(0, {folder!r}); import demo_gpu as d; d.show()"
    ended = run("-c", program)
    for name in ("plain torch.compile", "with torch-diode", "max-autotune"):
        assert name in ended.stdout
