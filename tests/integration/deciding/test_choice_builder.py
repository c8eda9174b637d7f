"""What Inductor makes of a lone template whose operands are worked on before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.virtualized import V
from torch.nn import functional

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, lower
from torch_diode.integration.deciding import choice_builder
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.hooks.fallback import DiodeWarning

pytestmark = pytest.mark.usefixtures("fake_h200")

M, N, K = 384, 512, 640
X, W = Input((M, K), torch.float32), Input((K, N), torch.float32)
BEFORE: dict[str, tuple[Callable[..., Any], list[Input]]] = {
    "relu": (lambda x, w: torch.mm(torch.relu(x), w), [X, W]),
    "gelu": (lambda x, w: torch.mm(functional.gelu(x), w), [X, W]),
    "scale": (lambda x, w, v: torch.mm(x * v, w), [X, W, Input((K,), torch.float32)]),
    "of the weight": (lambda x, w: torch.mm(x, torch.relu(w)), [X, W]),
    "addmm": (
        lambda x, w, b: torch.addmm(b, torch.relu(x), w),
        [X, W, Input((N,), torch.float32)],
    ),
    "copy": (
        lambda x, w: torch.mm(x.permute(0, 2, 1, 3).reshape(M, K), w),
        [Input((6, 10, 64, 64)), Input((K, N))],
    ),
}
"""Such as Inductor puts into a template that is not benchmarked, up to eight times slower then. Its
template for bmm takes none."""


@pytest.mark.parametrize("work", BEFORE)
def test_untold_a_template_would_do_it_itself(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_compat, "disable_prologue_fusion", lambda _: None)
    fn, inputs = BEFORE[work]
    with registration.using(Forced(CONFIG)):
        assert len(lower(fn, inputs).kernels) == 1


@pytest.mark.parametrize("work", BEFORE)
def test_work_on_operands_stays_in_a_kernel_of_its_own(work: str) -> None:
    fn, inputs = BEFORE[work]
    with registration.using(Forced(CONFIG)):
        kernels = lower(fn, inputs).kernels
        assert registration.status().counters.fallbacks == {}
    assert len(kernels) == 2, kernels
    assert "triton_tem" in kernels[1]


def test_the_same_with_a_handler_put_in_by_hand() -> None:
    with V.set_choices_handler(DiodeInductorChoices(Forced(CONFIG))):
        assert len(lower(*BEFORE["relu"]).kernels) == 2


def test_the_same_of_the_only_one_of_a_list() -> None:
    alone = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
    with registration.using(Forced(CONFIG), top=1):
        assert len(lower(*BEFORE["relu"], alone).kernels) == 2


def test_a_fault_while_looking_at_a_list_leaves_it_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: Any) -> None:
        raise AttributeError("this torch has moved it")

    with registration.using(Forced(CONFIG)):
        lower(*BEFORE["relu"], generate=False)  # what is rendered in the hook has its own guard
        monkeypatch.setattr(choice_builder, "keep_single_choice", fail)
        with pytest.warns(DiodeWarning, match="this torch has moved it"):
            assert len(lower(*BEFORE["relu"]).kernels) == 2
        assert sum(registration.status().counters.fallbacks.values()) == 1


def test_torchs_own_lone_template_is_left_as_it_is() -> None:
    """With torch-diode registered and abstaining."""
    from tests.integration.forced import FunctionHeuristic

    alone = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
    only = {"max_autotune_gemm_search_space": "DEFAULT", "test_configs.max_mm_configs": 1}
    with registration.using(FunctionHeuristic(lambda _: None)):
        assert len(lower(*BEFORE["relu"], alone | only).kernels) == 1
