"""Default heuristics are found, loaded once and told apart by their fingerprint."""

import pytest
import torch
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode

import torch_diode
from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from tests.samples import H200
from torch_diode.integration import default_heuristic
from torch_diode.integration.deciding.heuristics_in_use import HeuristicsInUse
from torch_diode.integration.hooks import device_hardware
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.settings import Settings
from torch_diode.model.registry import SHIPPED
from torch_diode.types.errors import FileFaultError


def in_use(settings: Settings) -> HeuristicsInUse:
    return HeuristicsInUse(settings, Fallback(), {})


def test_the_fingerprint_depends_on_heuristic_settings_and_version(monkeypatch):
    settings = Settings(Forced(CONFIG))
    changes = (
        {},
        {"heuristic": Forced(None)},
        {"mode": "single"},
        {"top": 7},
        {"tma": True},
        {"epilogues": False},
    )
    texts = {in_use(settings.changed(**change)).fingerprint([]) for change in changes}
    assert len(texts) == len(changes)
    assert in_use(settings).fingerprint([]) in texts
    monkeypatch.setattr(torch_diode, "__version__", "99.0")
    assert in_use(settings).fingerprint([]) not in texts


def test_a_compile_that_stays_plain_torchs_has_no_fingerprint(monkeypatch):
    with device_hardware.pretending(H200):
        observing = Settings(Forced(CONFIG), mode="observe")
        assert in_use(observing).fingerprint(["cuda"]) == ""
        assert in_use(Settings()).fingerprint([]) == ""
        unreadable = in_use(Settings(model="/nonexistent/model.pt"))
        assert unreadable.fingerprint(["cuda"]) == ""
    monkeypatch.setattr(compile_fx, "fx_compile_mode", compile_fx.FxCompileMode.SUBPROCESS)
    assert in_use(Settings(Forced(CONFIG))).fingerprint([]) == ""


def test_the_default_is_loaded_once_per_hardware(monkeypatch):
    loads = []

    def default(hardware, settings):
        loads.append(hardware)
        return Forced(CONFIG)

    monkeypatch.setattr(default_heuristic, "default_heuristic", default)
    heuristics = in_use(Settings())
    assert heuristics.loaded() == {}
    assert heuristics.of(H200) is heuristics.of(H200)
    assert loads == [H200]
    assert heuristics.loaded() == {"nvidia-h200": "forced, decides alone"}
    with device_hardware.pretending(H200):
        assert heuristics.fingerprint(["cuda"])


def test_a_default_that_cannot_be_loaded_raises_the_same_error_each_time(monkeypatch):
    loads = []

    def default(hardware, settings):
        loads.append(hardware)
        raise FileFaultError("model.pt: not a model")

    monkeypatch.setattr(default_heuristic, "default_heuristic", default)
    heuristics = in_use(Settings())
    for _ in range(2):
        with pytest.raises(FileFaultError):
            heuristics.of(H200)
    assert loads == [H200]
    assert heuristics.loaded() == {"nvidia-h200": "model.pt: not a model"}
    assert not heuristics.found_any()


@pytest.mark.parametrize(
    "on_this_thread",
    [
        lambda: tracing(TracingContext(FakeTensorMode())),
        FakeTensorMode,
        lambda: torch.device("meta"),
    ],
    ids=["tracing", "fake tensors", "another default device"],
)
def test_a_model_loads_the_same_whatever_the_compiling_thread_has_set(on_this_thread):
    plain = in_use(Settings(model=SHIPPED)).of(H200)
    with on_this_thread():
        loaded = in_use(Settings(model=SHIPPED)).of(H200)
    assert loaded.fingerprint() == plain.fingerprint()
