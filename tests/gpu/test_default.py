"""`import torch_diode` and `torch.compile` with default settings on a real GPU."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.gpu.programs import run
from torch_diode.hardware import detect
from torch_diode.integration.default_heuristic import default_heuristic
from torch_diode.integration.settings import Settings

PROGRAM = """
import json
import torch
import torch_diode
from torch._dynamo.utils import counters

torch.manual_seed(0)
a = torch.randn(512, 1024, device="cuda", dtype=torch.bfloat16)
b = torch.randn(1024, 2048, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    result = torch.compile(lambda a, b: torch.relu(a @ b))(a, b)
    expected = torch.relu(a @ b)
print(json.dumps({
    "sources": sorted({decision.source for decision in torch_diode.explain()}),
    "fallbacks": dict(torch_diode.status().counters.fallbacks),
    "hits": counters["aot_autograd"]["autograd_cache_hit"]
    + counters["inductor"]["fxgraph_cache_hit"],
    "error": ((result - expected).float().norm() / expected.float().norm()).item(),
}))
"""


def run_program(caches: Path) -> dict[str, Any]:
    ended = run("-c", PROGRAM, TORCH_DIODE="1", TORCHINDUCTOR_CACHE_DIR=str(caches))
    return dict(json.loads(ended.stdout.splitlines()[-1]))


@pytest.mark.skipif(
    default_heuristic(detect(), Settings()) is None, reason="no model is shipped for this GPU"
)
def test_the_shipped_model_decides_and_the_next_process_hits_the_cache(tmp_path):
    first, second = run_program(tmp_path), run_program(tmp_path)
    assert len(first["sources"]) == 1
    assert first["sources"][0].startswith("model ")
    for each in (first, second):
        assert not each["fallbacks"]
        assert each["error"] < 0.01
    assert first["hits"] == 0
    assert second["hits"] > 0
