"""The script that compiles flex attention's kernels and records their resources."""

import json

import pytest
import torch

from tests.scripts import run_inside
from torch_diode.candidates.gpu.attention import PATH, configs_of, read_measured
from torch_diode.integration.capture.attention import lowered_here


@pytest.mark.skipif(not lowered_here(), reason="this build of torch lowers flex attention for CUDA")
def test_a_build_that_cannot_lower_flex_attention_is_named():
    ended = run_inside("workflows/measure_attention.py")
    assert ended.returncode == 2
    assert f"torch {torch.__version__}: " in ended.stderr


@pytest.mark.skipif(bool(lowered_here()), reason=lowered_here())
def test_a_kernel_is_compiled_once_and_needs_what_is_on_file(tmp_path):
    name = "decode/bfloat16/64/sm_90"
    output = tmp_path / "attention.json"
    options = ("--arch", "sm_90", "--kinds", "decode", "--precisions", "bfloat16")
    script = ("workflows/measure_attention.py", *options, "--head-dims", 64, "--output", output)
    assert run_inside(*script).returncode == 0
    measured = dict(configs_of("decode", read_measured(output)[name]))
    known = dict(configs_of("decode", read_measured(PATH)[name]))
    assert {config: row[0] for config, row in measured.items()} == {
        config: row[0] for config, row in known.items()
    }
    assert json.loads(output.read_text())["measured_with"]["torch"] == torch.__version__
    assert " 0 to compile" in run_inside(*script).stdout
