"""A second decision is one more class: here, when a reduction keeps its row in registers."""

from collections.abc import Iterable
from typing import Any

import pytest
import torch

from tests.integration.cases import CONFIG, inputs
from tests.integration.forced import Forced
from torch_diode.integration import registration
from torch_diode.integration.base import ChoicesIntegration
from torch_diode.integration.capture.fake_gpu import Input, lower

ROWS = [Input((1024, 512), torch.float32)]

pytestmark = pytest.mark.usefixtures("fake_h200")


class PersistentReductions(ChoicesIntegration):
    """No reduction is persistent; everything else is torch's."""

    name = "persistent-reductions"
    hooks = ("should_use_persistent_reduction",)

    def mixin(self, handler: Any) -> type:
        class Mixin:
            @staticmethod
            def should_use_persistent_reduction(features: Any, cooperative: bool) -> bool:
                return False

        return Mixin

    def fingerprint(self, devices: Iterable[Any]) -> str:
        return "never-persistent"


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def test_a_second_decision_is_one_class_beside_the_first():
    assert "persistent_reduction" in lower(total, ROWS).source
    registration.enable(Forced(CONFIG), integrations=[PersistentReductions()])
    assert "persistent_reduction" not in lower(total, ROWS).source
    assert lower(torch.mm, inputs("mm")).kernels == ["triton_tem_fused_0"]
    outcomes = {step.name: step.outcome for step in registration.status().steps}
    assert outcomes["persistent-reductions"] == outcomes["matmul"] == "ok"
    assert "never-persistent" in registration._registration.cache_keys.fingerprint([])
    registration.disable()
    assert "persistent_reduction" in lower(total, ROWS).source


def test_an_integration_without_its_interface_fails_alone():
    class Missing(PersistentReductions):
        name = "missing"
        hooks = ("should_brew_coffee",)

    registration.enable(Forced(CONFIG), integrations=[Missing()])
    assert lower(torch.mm, inputs("mm")).kernels == ["triton_tem_fused_0"]
    (step,) = registration.status().failed
    assert step.detail == "InductorChoices has no should_brew_coffee"
