"""The demo's part for a machine with a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SCRIPT = Path(__file__).parents[2] / "workflows" / "demo_gpu.py"


def test_each_variant_compiles_runs_and_is_timed():
    program = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import demo_gpu as d; d.show()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    print(ended.stdout)
    assert ended.returncode == 0, ended.stderr
    for name in ("plain torch.compile", "with torch-diode", "max-autotune"):
        assert name in ended.stdout
