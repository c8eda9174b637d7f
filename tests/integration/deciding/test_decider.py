"""What a decider is asked apart from decisions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode

import torch_diode
from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from torch_diode.hardware import known
from torch_diode.integration import default_heuristic
from torch_diode.integration.deciding.decider import Decider
from torch_diode.integration.hooks import device_hardware
from torch_diode.integration.settings import Settings
from torch_diode.model.registry import SHIPPED
from torch_diode.types.errors import FileFaultError

H200 = known("nvidia-h200")


def test_the_fingerprint_changes_with_heuristic_mode_and_number() -> None:
    settings = Settings(Forced(CONFIG))
    texts = {
        Decider(each).fingerprint([])
        for each in (
            settings,
            settings.changed(heuristic=Forced(None)),
            settings.changed(mode="single"),
            settings.changed(top=7),
            settings.changed(tma=True),
            settings.changed(epilogues=False),
        )
    }
    assert len(texts) == 6
    assert Decider(settings).fingerprint([]) in texts


def test_another_version_has_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    decider = Decider(Settings(Forced(CONFIG)))
    before = decider.fingerprint([])
    monkeypatch.setattr(torch_diode, "__version__", "99.0")
    assert decider.fingerprint([]) != before


@pytest.mark.usefixtures("fake_h200")
def test_a_model_that_cannot_be_read_leaves_the_caches_to_torch() -> None:
    decider = Decider(Settings(model="/nonexistent/model.pt"))
    assert decider.fingerprint([torch.device("cuda", 0)]) == ""


def test_what_is_compiled_in_another_process_is_plain_torchs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decider = Decider(Settings().changed(heuristic=Forced(CONFIG)))
    assert decider.fingerprint([]) != ""
    mode = compile_fx.FxCompileMode.SUBPROCESS
    monkeypatch.setattr(compile_fx, "fx_compile_mode", mode)
    assert decider.fingerprint([]) == ""


def test_what_cannot_change_a_compile_has_no_fingerprint() -> None:
    with device_hardware.pretending(H200):
        assert Decider(Settings(Forced(CONFIG), mode="observe")).fingerprint(["cuda"]) == ""
        assert Decider(Settings()).fingerprint([]) == ""


def test_the_default_is_looked_for_once_for_each_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def default(hardware: object, settings: object) -> Forced:
        asked.append(hardware)
        return Forced(CONFIG)

    monkeypatch.setattr(default_heuristic, "default_heuristic", default)
    decider = Decider(Settings())
    assert decider.loaded() == {}
    assert decider.heuristic_for(H200) is decider.heuristic_for(H200)
    assert asked == [H200]
    assert decider.loaded() == {"nvidia-h200": "forced"}
    with device_hardware.pretending(H200):
        assert decider.fingerprint(["cuda"])


def test_a_default_that_cannot_be_loaded_raises_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = []

    def default(hardware: object, settings: object) -> None:
        tries.append(1)
        raise FileFaultError("model.pt: not a model")

    monkeypatch.setattr(default_heuristic, "default_heuristic", default)
    decider = Decider(Settings())
    for _ in range(2):
        with pytest.raises(FileFaultError):
            decider.heuristic_for(H200)
    assert len(tries) == 1
    assert decider.loaded() == {"nvidia-h200": "model.pt: not a model"}
    assert not decider.has_heuristic()


@pytest.mark.parametrize(
    "on_this_thread",
    [
        lambda: tracing(TracingContext(FakeTensorMode())),
        FakeTensorMode,
        lambda: torch.device("meta"),
    ],
    ids=["tracing", "fake tensors", "another default device"],
)
def test_a_model_is_read_as_it_is_whatever_the_compiling_thread_has_set(
    on_this_thread: Callable[[], AbstractContextManager[object]],
) -> None:
    plain = Decider(Settings(model=SHIPPED)).heuristic_for(H200)
    with on_this_thread():
        found = Decider(Settings(model=SHIPPED)).heuristic_for(H200)
    assert found is not None
    assert plain is not None
    assert found.fingerprint() == plain.fingerprint()
