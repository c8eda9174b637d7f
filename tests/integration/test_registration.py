"""On, off, for a while; lazily; and every step accounted for."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm, virtualized
from torch._inductor.codecache import FxGraphHashDetails
from torch._inductor.virtualized import V

from tests.integration.cases import BLOCKS, CONFIG, MAX_AUTOTUNE, inputs
from tests.integration.forced import Forced, abstaining
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import lower
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.types.errors import InvalidValueError

LIGHT = """
import json, sys
from torch_diode.integration import registration
registration.register_on_import()
steps = [[s.name, s.outcome] for s in registration.status().steps]
heavy = [name for name in ("torch", "numpy", "pyarrow") if name in sys.modules]
print(json.dumps({"steps": steps, "heavy": heavy, "meta": len(sys.meta_path)}))
"""


def torch_state() -> dict[str, Any]:
    """Everything registration touches, as torch has it."""
    return {
        "slot": dict(vars(virtualized._choices)),
        "handler": V.choices,
        "details": FxGraphHashDetails.__init__,
        "preprocessing": list(select_algorithm.get_algorithm_selector_cache().preprocessing_fns),
        "config": torch._inductor.config.get_config_copy(),
        "meta_path": list(sys.meta_path),
    }


@pytest.mark.usefixtures("fake_h200")
def test_disable_puts_everything_back() -> None:
    before = torch_state()
    registration.enable(Forced(CONFIG))
    assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    assert V.choices is not before["handler"]
    assert registration.status().heuristics == {"any hardware": "forced"}
    registration.disable()
    assert torch_state() == before
    assert registration.status().heuristics == {}
    assert registration.status().counters.decisions == 1  # what was is still told
    registration.disable()
    assert torch_state() == before


@pytest.mark.usefixtures("fake_h200")
def test_enabling_changes_no_torch_config() -> None:
    before = torch._inductor.config.get_config_copy()
    registration.enable(Forced(CONFIG))
    lower(torch.mm, inputs("mm"), generate=False)
    assert torch._inductor.config.get_config_copy() == before


@pytest.mark.usefixtures("fake_h200")
def test_using_is_scoped_inside_and_outside_of_enable() -> None:
    before = torch_state()
    with registration.using(Forced(CONFIG)):
        assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    assert torch_state() == before
    registration.enable(Forced(None))
    with registration.using(Forced(CONFIG)):
        assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    assert lower(torch.mm, inputs("mm")).kernels == ["mm"]


@pytest.mark.usefixtures("fake_h200")
def test_paused_it_is_torch_alone_and_then_what_it_was() -> None:
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
def test_using_ends_after_an_error_too() -> None:
    def fails() -> None:
        with registration.using(Forced(CONFIG)):
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert not registration.status().enabled


@pytest.mark.usefixtures("fake_h200")
def test_every_thread_is_reached_whether_it_compiled_before_or_not() -> None:
    go, ready = threading.Event(), threading.Event()
    found: list[Any] = []

    def early() -> None:
        assert V.choices is not None  # torch now has a handler for this thread
        ready.set()
        go.wait(10)
        found.append(type(V.choices).__name__)

    thread = threading.Thread(target=early)
    thread.start()
    ready.wait(10)
    registration.enable(Forced(CONFIG))
    go.set()
    thread.join()
    late = threading.Thread(target=lambda: found.append(lower(torch.mm, inputs("mm")).configs))
    late.start()
    late.join()
    assert found == ["DiodeInductorChoices", [BLOCKS]]


@pytest.mark.usefixtures("fake_h200")
def test_status_tells_each_step_and_prints() -> None:
    registration.enable(Forced(CONFIG, name="mine"))
    lower(torch.mm, inputs("mm"), generate=False)
    status = registration.status()
    assert {step.name: step.outcome for step in status.steps} == {
        "torch": "ok",
        "inductor": "ok",
        "matmul": "ok",
        "heuristic": "ok",
        "cache keys": "ok",
    }
    assert status.counters.decisions == 1
    text = str(status)
    assert "torch-diode is on" in text
    assert torch.__version__ in text
    assert "mine" in text


@pytest.mark.usefixtures("fake_h200")
def test_without_a_model_status_says_so() -> None:
    registration.enable()
    lower(torch.mm, inputs("mm"), generate=False)
    (step,) = [step for step in registration.status().steps if step.name == "heuristic"]
    assert step.outcome == "none"
    assert "no model, as TORCH_DIODE_MODEL says" in step.detail


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


def test_a_release_without_the_interface_is_plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_diode.integration.hooks import torch_compat

    monkeypatch.setattr(torch_compat, "why_unusable", lambda: "InductorChoices has moved to Mars")
    registration.enable(abstaining())
    assert type(V.choices).__name__ == "InductorChoices"
    (step,) = registration.status().failed
    assert (step.name, step.detail) == ("matmul", "InductorChoices has moved to Mars")


def test_importing_is_light_and_waits_for_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["heavy"] == []
    outcomes = dict(answer["steps"])
    assert outcomes["torch"] == "ok"
    assert outcomes["inductor"] == "waiting"


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE", "0")
    registration.register_on_import()
    status = registration.status()
    assert not status.enabled
    assert status.steps[0].detail == "TORCH_DIODE=0"


def test_a_wrong_switch_warns_and_leaves_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE_MODE", "fastest")
    with pytest.warns(DiodeWarning, match="fastest"):
        registration.register_on_import()
    assert not registration.status().enabled
    assert registration.status().failed


def test_the_environment_sets_mode_and_strictness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE_MODE", "single")
    monkeypatch.setenv("TORCH_DIODE_STRICT", "1")
    registration.register_on_import()
    assert registration.status().mode == "single"
    assert registration._registration.matmul.settings.strict


def test_what_is_no_heuristic_is_refused_before_anything_changes() -> None:
    before = torch_state()
    with pytest.raises(InvalidValueError, match="expected a Heuristic"):
        registration.enable(lambda problem, candidates: candidates)  # type: ignore[arg-type]
    assert torch_state() == before


def test_probe_asks_torch_now() -> None:
    registration.enable(abstaining())
    steps = {step.name: step.outcome for step in registration.probe().steps}
    assert steps["matmul"] == "ok"


@pytest.mark.usefixtures("fake_h200")
def test_scopes_that_end_in_another_order_leave_nothing_behind() -> None:
    def decides() -> str:
        lower(torch.mm, inputs("mm"), generate=False)
        return registration.explain()[-1].source

    registration.enable(Forced(CONFIG, name="outside"))
    one = registration.using(Forced(CONFIG, name="one"))
    other = registration.using(Forced(CONFIG, name="other"))
    one.__enter__()
    other.__enter__()
    assert decides() == "other"
    one.__exit__(None, None, None)
    assert decides() == "other"
    other.__exit__(None, None, None)
    assert decides() == "outside"


def test_a_scope_ends_as_it_began_whatever_was_done_in_it() -> None:
    with registration.using(Forced(CONFIG)):
        registration.enable(Forced(None))
    assert not registration.status().enabled
    registration.enable(Forced(CONFIG))
    with registration.using(Forced(None)):
        registration.disable()
    assert registration.status().enabled
    assert registration.status().heuristics == {"any hardware": "forced"}


@pytest.mark.usefixtures("fake_h200")
def test_disable_also_undoes_what_a_handler_put_in_by_hand_set_up() -> None:
    before = dict(vars(select_algorithm.AlgorithmSelectorCache))
    with V.set_choices_handler(DiodeInductorChoices(Forced(CONFIG))):
        lower(torch.mm, inputs("mm"), MAX_AUTOTUNE, generate=False)
    assert dict(vars(select_algorithm.AlgorithmSelectorCache)) != before
    registration.disable()
    assert dict(vars(select_algorithm.AlgorithmSelectorCache)) == before


@pytest.mark.usefixtures("fake_h200")
def test_a_heuristic_needs_no_name() -> None:
    class Nameless(Heuristic):
        def rank(self, *_: Any) -> None:
            return None

        def fingerprint(self) -> str:
            return "nameless"

    assert registration.enable(Nameless()).heuristics == {"any hardware": "Nameless"}


@pytest.mark.parametrize("top", [0, -1, 2.5, "5"])
def test_a_wrong_top_is_refused(top: Any) -> None:
    with pytest.raises(InvalidValueError, match="top"):
        registration.enable(Forced(CONFIG), top=top)


def test_what_is_no_integration_is_refused_and_nothing_is_on() -> None:
    with pytest.raises(InvalidValueError, match="expected a BaseIntegration"):
        registration.enable(Forced(CONFIG), integrations=[1])  # type: ignore[list-item]
    assert not registration.status().enabled
