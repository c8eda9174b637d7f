"""Fingerprints, loading and caching; decisions themselves are tested in hooks/test_choices."""

import numpy as np
import pytest
import torch
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode

import torch_diode
from tests.integration.cases import CONFIG
from tests.integration.forced import Forced, FunctionHeuristic
from tests.samples import H200
from torch_diode import Candidates, MMShape, Ranking
from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic, Chain
from torch_diode.integration import default_heuristic
from torch_diode.integration.deciding.decider import Decider
from torch_diode.integration.hooks import device_hardware
from torch_diode.integration.settings import Settings
from torch_diode.model.registry import SHIPPED
from torch_diode.types.errors import FileFaultError

PROBLEM = MMShape("mm", 128, 256, 512)


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
    texts = {Decider(settings.changed(**change)).fingerprint([]) for change in changes}
    assert len(texts) == len(changes)
    assert Decider(settings).fingerprint([]) in texts
    monkeypatch.setattr(torch_diode, "__version__", "99.0")
    assert Decider(settings).fingerprint([]) not in texts


def test_a_compile_that_stays_plain_torchs_has_no_fingerprint(monkeypatch):
    with device_hardware.pretending(H200):
        assert Decider(Settings(Forced(CONFIG), mode="observe")).fingerprint(["cuda"]) == ""
        assert Decider(Settings()).fingerprint([]) == ""
        unreadable = Decider(Settings(model="/nonexistent/model.pt"))
        assert unreadable.fingerprint(["cuda"]) == ""
    monkeypatch.setattr(compile_fx, "fx_compile_mode", compile_fx.FxCompileMode.SUBPROCESS)
    assert Decider(Settings(Forced(CONFIG))).fingerprint([]) == ""


def test_the_default_is_loaded_once_per_hardware(monkeypatch):
    loads = []

    def default(hardware, settings):
        loads.append(hardware)
        return Forced(CONFIG)

    monkeypatch.setattr(default_heuristic, "default_heuristic", default)
    decider = Decider(Settings())
    assert decider.loaded() == {}
    assert decider.heuristic_for(H200) is decider.heuristic_for(H200)
    assert loads == [H200]
    assert decider.loaded() == {"nvidia-h200": "forced, decides alone"}
    with device_hardware.pretending(H200):
        assert decider.fingerprint(["cuda"])


def test_a_default_that_cannot_be_loaded_raises_the_same_error_each_time(monkeypatch):
    loads = []

    def default(hardware, settings):
        loads.append(hardware)
        raise FileFaultError("model.pt: not a model")

    monkeypatch.setattr(default_heuristic, "default_heuristic", default)
    decider = Decider(Settings())
    for _ in range(2):
        with pytest.raises(FileFaultError):
            decider.heuristic_for(H200)
    assert loads == [H200]
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
def test_a_model_loads_the_same_whatever_the_compiling_thread_has_set(on_this_thread):
    plain = Decider(Settings(model=SHIPPED)).heuristic_for(H200)
    with on_this_thread():
        loaded = Decider(Settings(model=SHIPPED)).heuristic_for(H200)
    assert loaded.fingerprint() == plain.fingerprint()


class Counting(FunctionHeuristic):
    """Counts its calls."""

    def __init__(self, steady: bool) -> None:
        super().__init__(self._rank)
        self.steady, self.calls = steady, 0

    def _rank(self, candidates: Candidates) -> Ranking:
        self.calls += 1
        return Ranking.by_time(np.arange(1.0, len(candidates) + 1), "counting")


@pytest.mark.parametrize(("steady", "calls"), [(True, 1), (False, 3)])
def test_rankings_of_steady_heuristics_are_cached(steady, calls):
    heuristic = Counting(steady)
    decider, space = Decider(Settings(heuristic)), candidate_space(PROBLEM, H200)
    rankings = {id(decider.rank(PROBLEM, space, H200)): None for _ in range(3)}
    assert heuristic.calls == calls
    assert (len(rankings) == 1) or not steady


def test_another_problem_candidate_list_or_hardware_is_ranked_anew():
    heuristic = Counting(steady=True)
    decider, space = Decider(Settings(heuristic)), candidate_space(PROBLEM, H200)
    decider.rank(PROBLEM, space, H200)
    decider.rank(MMShape("mm", 129, 256, 512), space, H200)
    decider.rank(PROBLEM, space, known("nvidia-h100"))
    decider.rank(PROBLEM, space.take(np.arange(10)), H200)
    assert heuristic.calls == 4
    decider.change(Settings(other := Counting(steady=True)))
    decider.rank(PROBLEM, space, H200)
    assert (heuristic.calls, other.calls) == (4, 1)


def test_a_chain_is_as_steady_as_its_members():
    assert Chain(AnalyticalHeuristic(), Counting(steady=True)).steady
    assert not Chain(AnalyticalHeuristic(), Counting(steady=False)).steady
