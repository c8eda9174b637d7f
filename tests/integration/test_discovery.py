"""Integrations of another distribution, which is installed for real."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch._inductor import config

from tests.integration.cases import CONFIG, inputs
from tests.integration.forced import Forced
from tests.integration.test_base import ROWS, PersistentReductions, total
from tests.integration.test_registration import torch_state
from torch_diode import register_integration
from torch_diode.integration import registration
from torch_diode.integration.base import BaseIntegration
from torch_diode.integration.capture.fake_gpu import lower
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.types.errors import InvalidValueError

PROJECT = Path(__file__).parent / "second_distribution"

pytestmark = pytest.mark.usefixtures("fake_h200")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution, built and installed."""
    target = tmp_path_factory.mktemp("site")
    install = ("install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target")
    subprocess.run([sys.executable, "-m", "pip", *install, target, PROJECT], check=True)
    return target


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("second_distribution", None)
    importlib.invalidate_caches()


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("ignore::torch_diode.integration.hooks.fallback.DiodeWarning")
def test_what_it_offers_decides_and_what_fails_is_named_and_harms_nothing() -> None:
    before = torch_state()
    assert "persistent_reduction" in lower(total, ROWS).source
    registration.enable(Forced(CONFIG))
    assert "persistent_reduction" not in lower(total, ROWS).source
    assert lower(torch.mm, inputs("mm")).kernels == ["triton_tem_fused_0"]
    status = registration.status()
    outcomes = {step.name: (step.outcome, step.detail) for step in status.steps}
    assert outcomes["looped"] == ("ok", "answers should_use_persistent_reduction")
    assert outcomes["matmul"][0] == outcomes["raising"][0] == "ok"
    assert "got brew_coffee; expected options of torch._inductor.config" in outcomes["unset"][1]
    assert "No module named 'second_distribution.not_there'" in outcomes["unloadable"][1]
    assert "expected a subclass of BaseIntegration" in outcomes["no_integration"][1]
    assert {step.name for step in status.failed} == {"unset", "unloadable", "no_integration"}
    for line in (
        "integration looped: from second-distribution 1.2",
        "integration unloadable: from second-distribution 1.2, failed",
        "torch config turned on: loop_ordering_after_fusion=False (looped)",
        "fell back 1 times: integration raising: KeyError: 'no such device'",
    ):
        assert line in str(status)
    assert config.loop_ordering_after_fusion is False
    assert "looped 1" in registration._registration.cache_keys.fingerprint([])
    assert "its file is gone" in dict(registration.status().counters.fallbacks).popitem()[0]
    assert {step.name for step in registration.status().failed} >= {"raising"}
    registration.disable()
    assert torch_state() == before


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("ignore::torch_diode.integration.hooks.fallback.DiodeWarning")
def test_it_is_loaded_when_it_is_needed_not_when_torch_diode_is_imported() -> None:
    registration.enable(Forced(CONFIG))
    assert "second_distribution" not in sys.modules
    registration._registration.cache_keys.fingerprint([])
    assert "second_distribution" in sys.modules


def test_one_registered_by_hand_is_installed_at_once_or_when_it_is_turned_on() -> None:
    before = torch_state()
    register_integration(PersistentReductions)
    assert torch_state() == before
    registration.enable(Forced(CONFIG))
    assert "persistent_reduction" not in lower(total, ROWS).source

    @register_integration
    class Replacing(PersistentReductions):
        def mixin(self, handler: object) -> type:
            raise RuntimeError("changed my mind")

    with pytest.warns(DiodeWarning, match="persistent-reductions: RuntimeError: changed my mind"):
        assert "persistent_reduction" in lower(total, ROWS).source
    assert [step.detail for step in registration.status().failed] == [
        "RuntimeError: changed my mind in mixin of test_discovery.py"
    ]
    registration.disable()
    assert torch_state() == before


@pytest.mark.parametrize("wrong", [print, PersistentReductions(), int, type("No", (), {})])
def test_anything_else_is_refused(wrong: type[BaseIntegration]) -> None:
    with pytest.raises(InvalidValueError, match="expected a subclass of BaseIntegration"):
        register_integration(wrong)
