"""Prologues stay out of a single template, which is not benchmarked."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.virtualized import V
from torch.nn import functional

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced, abstaining
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, lower
from torch_diode.integration.deciding import choice_builder
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.hooks.fallback import DiodeWarning

pytestmark = pytest.mark.usefixtures("fake_h200")

M, N, K = 384, 512, 640
TRITON_ONLY = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
X, W = Input((M, K), torch.float32), Input((K, N), torch.float32)
PROLOGUES: dict[str, tuple[Callable[..., Any], list[Input]]] = {
    "relu": (lambda x, w: torch.mm(torch.relu(x), w), [X, W]),
    "gelu": (lambda x, w: torch.mm(functional.gelu(x), w), [X, W]),
    "scale": (lambda x, w, v: torch.mm(x * v, w), [X, W, Input((K,), torch.float32)]),
    "weight": (lambda x, w: torch.mm(x, torch.relu(w)), [X, W]),
    "addmm": (
        lambda x, w, b: torch.addmm(b, torch.relu(x), w),
        [X, W, Input((N,), torch.float32)],
    ),
    "copy": (
        lambda x, w: torch.mm(x.permute(0, 2, 1, 3).reshape(M, K), w),
        [Input((6, 10, 64, 64)), Input((K, N))],
    ),
}
"""Prologues that Inductor fuses into a template without a benchmark, up to eight times slower. Its
template for bmm fuses none."""


FUSE_NO_COPY = ("2.10.0", "2.11.0")


@pytest.mark.parametrize("name", PROLOGUES)
def test_a_prologue_stays_in_a_kernel_of_its_own(name, monkeypatch):
    fn, inputs = PROLOGUES[name]
    with registration.using(Forced(CONFIG)):
        kernels = lower(fn, inputs).kernels
        assert registration.status().counters.fallbacks == {}
        monkeypatch.setattr(torch_compat, "disable_prologue_fusion", lambda _: None)
        fused = len(lower(fn, inputs).kernels) == 1
        assert fused or (name == "copy" and torch_compat.torch_release() in FUSE_NO_COPY)
    assert len(kernels) == 2, kernels
    assert "triton_tem" in kernels[1]


def test_the_same_with_a_handler_set_by_hand_and_for_the_only_one_of_a_list():
    with V.set_choices_handler(DiodeInductorChoices(Forced(CONFIG))):
        assert len(lower(*PROLOGUES["relu"]).kernels) == 2
    with registration.using(Forced(CONFIG), top=1):
        assert len(lower(*PROLOGUES["relu"], TRITON_ONLY).kernels) == 2


def test_an_error_in_preprocessing_leaves_the_list_unchanged(monkeypatch):
    def fail(_):
        raise AttributeError("this torch has moved it")

    with registration.using(Forced(CONFIG)):
        lower(*PROLOGUES["relu"], generate=False)
        monkeypatch.setattr(choice_builder, "keep_single_choice", fail)
        with pytest.warns(DiodeWarning, match="this torch has moved it"):
            assert len(lower(*PROLOGUES["relu"]).kernels) == 2
        assert sum(registration.status().counters.fallbacks.values()) == 1


def test_torchs_own_single_template_is_unchanged_where_we_abstain():
    only = {"max_autotune_gemm_search_space": "DEFAULT", "test_configs.max_mm_configs": 1}
    with registration.using(abstaining()):
        assert len(lower(*PROLOGUES["relu"], TRITON_ONLY | only).kernels) == 1
