"""Turning on and off, lazily and reversibly, with a status for every step."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm, virtualized
from torch._inductor.codecache import FxGraphHashDetails
from torch._inductor.virtualized import V

from tests.integration.cases import BLOCKS, CONFIG, MAX_AUTOTUNE, inputs
from tests.integration.forced import Forced, abstaining
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import lower
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.types.errors import InvalidValueError


def torch_state() -> dict[str, Any]:
    """Everything in torch that registration changes."""
    return {
        "slot": dict(vars(virtualized._choices)),
        "handler": V.choices,
        "details": FxGraphHashDetails.__init__,
        "preprocessing": list(select_algorithm.get_algorithm_selector_cache().preprocessing_fns),
        "config": torch._inductor.config.get_config_copy(),
        "portable config": torch._inductor.config.save_config_portable(),
        "meta_path": list(sys.meta_path),
    }


@pytest.mark.usefixtures("fake_h200")
def test_disable_puts_everything_back() -> None:
    before = torch_state()
    registration.enable(Forced(CONFIG))
    assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    assert V.choices is not before["handler"]
    assert torch_state()["config"] == before["config"]
    assert registration.status().heuristics == {"any hardware": "forced"}
    registration.disable()
    assert torch_state() == before
    assert registration.status().heuristics == {}
    assert registration.status().counters.decisions == 1
    registration.disable()
    assert torch_state() == before


@pytest.mark.usefixtures("fake_h200")
def test_using_is_scoped_within_enable_alone_and_after_an_error() -> None:
    before = torch_state()
    with registration.using(Forced(CONFIG)):
        assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    assert torch_state() == before
    registration.enable(Forced(None))
    with registration.using(Forced(CONFIG)):
        assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    assert lower(torch.mm, inputs("mm")).kernels == ["mm"]
    registration.disable()
    with pytest.raises(KeyError), registration.using(Forced(CONFIG)):
        raise KeyError
    assert not registration.status().enabled


@pytest.mark.usefixtures("fake_h200")
def test_paused_turns_it_off_and_back_on() -> None:
    before = torch_state()
    with registration.paused():
        assert torch_state() == before
    assert not registration.status().enabled
    registration.enable(Forced(CONFIG), "single")
    with registration.paused():
        assert torch_state() == before
        assert lower(torch.mm, inputs("mm")).kernels == ["mm"]
    assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    assert registration.status().mode == "single"


@pytest.mark.usefixtures("fake_h200")
def test_every_thread_is_reached_also_one_that_compiled_before() -> None:
    go, ready = threading.Event(), threading.Event()
    results: list[Any] = []

    def early() -> None:
        assert V.choices is not None  # creates this thread's handler
        ready.set()
        go.wait(10)
        results.append(type(V.choices).__name__)

    thread = threading.Thread(target=early)
    thread.start()
    ready.wait(10)
    registration.enable(Forced(CONFIG))
    go.set()
    thread.join()
    late = threading.Thread(target=lambda: results.append(lower(torch.mm, inputs("mm")).configs))
    late.start()
    late.join()
    assert results == ["DiodeInductorChoices", [BLOCKS]]


@pytest.mark.usefixtures("fake_h200")
def test_status_has_every_step_and_prints() -> None:
    registration.enable(Forced(CONFIG, name="mine"))
    lower(torch.mm, inputs("mm"), generate=False)
    status = registration.status()
    assert {step.name: step.outcome for step in status.steps} == {
        "torch": "ok",
        "inductor": "ok",
        "matmul": "ok",
        "attention": "ok",
        "cpu attention": "ok",
        "heuristic": "ok",
        "cache keys": "ok",
    }
    assert status.counters.decisions == 1
    for text in ("torch-diode is on", torch.__version__, "mine"):
        assert text in str(status)


@pytest.mark.usefixtures("fake_h200")
def test_status_has_the_reason_where_there_is_no_model() -> None:
    registration.enable()
    lower(torch.mm, inputs("mm"), generate=False)
    (step,) = [step for step in registration.status().steps if step.name == "heuristic"]
    assert step.outcome == "none"
    assert "no model, as TORCH_DIODE_MODEL says" in step.detail


@pytest.mark.usefixtures("fake_h200")
def test_explain_says_why_nothing_was_decided() -> None:
    registration.enable()
    assert "graphs from torch's cache keep their kernels" in str(registration.explain())
    lower(torch.mm, inputs("mm"), generate=False)
    head, note = str(registration.explain()).splitlines()
    assert head == "no decisions recorded"
    assert note == "note: torch decided: nvidia-h200: no model, as TORCH_DIODE_MODEL says"


@pytest.mark.usefixtures("fake_h200")
def test_explain_lists_and_logs_each_decision(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="torch_diode"), registration.using(Forced(CONFIG)):
        lower(torch.mm, inputs("mm"), generate=False)
    (decision,) = registration.explain()
    assert decision.problem.key == "mm:384x512x640:bfloat16:nn"
    assert decision.winner.predicted_us == 1.0
    assert len(decision.runners_up) == 3
    assert decision.source == "forced"
    assert decision.microseconds > 0
    (record,) = [r for r in caplog.records if r.name == "torch_diode"]
    assert "triton::mm 64x64x32" in record.getMessage()
    assert "mm:384x512x640" in str(registration.explain())


def test_a_release_without_the_interface_stays_plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_compat, "why_unusable", lambda: "InductorChoices has moved to Mars")
    registration.enable(abstaining())
    assert not hasattr(V.choices, "decider")
    (step,) = registration.status().failed
    assert (step.name, step.detail) == ("matmul", "InductorChoices has moved to Mars")


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE", "0")
    registration.register_on_import()
    status = registration.status()
    assert not status.enabled
    assert status.steps[0].detail == "TORCH_DIODE=0"


def test_a_wrong_switch_warns_and_leaves_torch_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE_MODE", "fastest")
    with pytest.warns(DiodeWarning, match="fastest"):
        registration.register_on_import()
    assert not registration.status().enabled
    assert registration.status().failed


@pytest.mark.usefixtures("fake_h200")
def test_scopes_may_end_in_any_order() -> None:
    def source() -> str:
        lower(torch.mm, inputs("mm"), generate=False)
        return registration.explain()[-1].source

    registration.enable(Forced(CONFIG, name="outside"))
    one = registration.using(Forced(CONFIG, name="one"))
    other = registration.using(Forced(CONFIG, name="other"))
    one.__enter__()
    other.__enter__()
    assert source() == "other"
    one.__exit__(None, None, None)
    assert source() == "other"
    other.__exit__(None, None, None)
    assert source() == "outside"


def test_a_scope_restores_the_state_before_it_whatever_was_done_inside() -> None:
    with registration.using(Forced(CONFIG)):
        registration.enable(Forced(None))
    assert not registration.status().enabled
    registration.enable(Forced(CONFIG))
    with registration.using(Forced(None)):
        registration.disable()
    assert registration.status().enabled
    assert registration.status().heuristics == {"any hardware": "forced"}


@pytest.mark.usefixtures("fake_h200")
def test_disable_also_uninstalls_the_clean_benchmark_of_a_handler_set_by_hand() -> None:
    before = dict(vars(select_algorithm.AlgorithmSelectorCache))
    with V.set_choices_handler(DiodeInductorChoices(Forced(CONFIG))):
        lower(torch.mm, inputs("mm"), MAX_AUTOTUNE, generate=False)
    assert dict(vars(select_algorithm.AlgorithmSelectorCache)) != before
    registration.disable()
    assert dict(vars(select_algorithm.AlgorithmSelectorCache)) == before


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"heuristic": print}, "expected a Heuristic"),
        ({"top": 0}, "expected a number"),
        ({"integrations": [1]}, "expected a BaseIntegration"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_changes(
    wrong: dict[str, Any], expected: str
) -> None:
    before = torch_state()
    with pytest.raises(InvalidValueError, match=expected):
        registration.enable(**wrong)
    assert torch_state() == before
    assert not registration.status().enabled
