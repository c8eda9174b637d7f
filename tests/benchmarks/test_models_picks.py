import pytest
import torch
from torch._inductor import select_algorithm as select

from tests.scripts import load_script
from torch_diode.integration.capture.fake_gpu import Input, lower


@pytest.mark.usefixtures("fake_h200")
def test_max_autotunes_picks_are_recorded_by_problem(monkeypatch):
    """Inductor's real lowering for an H200 with made-up times: the second choice is the fastest."""

    def lookup(self, choices, *args, **kwargs):
        return {choice: float(abs(number - 1)) for number, choice in enumerate(choices)}

    monkeypatch.setattr(select.AlgorithmSelectorCache, "lookup", lookup)
    monkeypatch.setattr(select.AlgorithmSelectorCache, "make_precompile_fn", lambda *_, **__: dict)
    before = list(select.get_algorithm_selector_cache().feedback_saver_fns)
    config = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}
    with load_script("benchmarks", "_models_picks").picks() as picks:
        lower(torch.mm, [Input((256, 512)), Input((512, 384))], config)
    ((problem, pick),) = picks.items()
    assert problem == "mm:256x384x512:bfloat16:nn"
    assert pick.startswith("triton::mm ")
    assert select.get_algorithm_selector_cache().feedback_saver_fns == before
