"""The model benchmark without its GPU: every architecture, tiny, on the CPU."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm as select

from tests.benchmarks.dry_run import ROOT, dry_run
from torch_diode.hardware import known
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend


def test_every_model_runs_and_agrees_with_eager(tmp_path: Path) -> None:
    output = tmp_path / "models.json"
    data, printed = dry_run("models_live.py", output, "--modes", "reduce-overhead")
    names = {row["model"] for row in data["rows"]}
    assert len(names) == 7
    assert len(data["rows"]) == 28
    for row in data["rows"]:
        assert row["difference"] < 1e-5
        assert row["compile_s"] > 0
    assert set(data["summary"]["models"]) == names
    assert "geomean" in printed


def test_the_better_of_two_modes_is_what_counts(tmp_path: Path) -> None:
    output = tmp_path / "models.json"
    options = ("--models", "dit", "recommender", "--modes", "reduce-overhead", "max-autotune")
    data, _ = dry_run("models_live.py", output, *options)
    turns = [row for row in data["rows"] if "in turn" in row]
    assert len(turns) == 2 * 2 * 2
    assert {row["mode"] for row in turns} == {"reduce-overhead", "max-autotune"}
    for name, ratios in data["summary"]["models"].items():
        (own,) = (
            row["over"]
            for row in turns
            if row["model"] == name and row["diode"] and row["mode"] == "reduce-overhead"
        )
        assert ratios["gpu over reduce-overhead"] == own["reduce-overhead"][0]
        assert ratios["gpu over max-autotune"] == own["max-autotune"][0]
        assert ratios["gpu over the better"] == max(own[mode][0] for mode in own)
        cold = {row["diode"]: row["compile_s"] for row in data["rows"] if _is(row, name, False)}
        (again,) = (r["compile_s"] for r in turns if _is(r, name, True) and not r["diode"])
        between = cold[True] / math.sqrt(cold[False] * again)
        assert ratios["compile over reduce-overhead"] == pytest.approx(between)
    before = len(data["rows"])
    again, _ = dry_run("models_live.py", output, *options)
    assert len(again["rows"]) == before, "what is there is not measured again"


def test_what_max_autotune_picked_is_told_by_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor's real lowering for an H200, with times put in: ATen is the second fastest."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    told = importlib.import_module("_models_picks")

    def lookup(self: Any, choices: list[Any], *args: Any, **kwargs: Any) -> dict[Any, float]:
        return {choice: float(abs(number - 1)) for number, choice in enumerate(choices)}

    monkeypatch.setattr(select.AlgorithmSelectorCache, "lookup", lookup)
    monkeypatch.setattr(select.AlgorithmSelectorCache, "make_precompile_fn", lambda *_, **__: dict)
    before = list(select.get_algorithm_selector_cache().feedback_saver_fns)
    config = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}
    with pretend(known("nvidia-h200")), told.picks() as found:
        lower(torch.mm, [Input((256, 512)), Input((512, 384))], config)
    (picked,) = found.items()
    assert picked[0] == "mm:256x384x512:bfloat16:nn"
    assert picked[1].startswith("triton::mm ")
    assert select.get_algorithm_selector_cache().feedback_saver_fns == before


def _is(row: dict[str, Any], name: str, in_turn: bool) -> bool:
    return (row["model"], row["mode"], "in turn" in row) == (name, "reduce-overhead", in_turn)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("_models_clock")


def times(
    clock: ModuleType, monkeypatch: pytest.MonkeyPatch, late: Callable[[int], bool], rounds: int
) -> tuple[list[list[float]], list[int], list[tuple[str, int]]]:
    """Two ways in turn, of which a round is late or not by how long the GPU sleeps before it."""
    rounds_seen: list[tuple[str, int]] = []

    def one_round(call: Callable[[], str], calls: int, cycles: int) -> tuple[float, bool]:
        rounds_seen.append((call(), cycles))
        return 1.0, late(cycles)

    monkeypatch.setattr(clock, "_cycles", lambda call, calls: 100)
    monkeypatch.setattr(clock, "_round", one_round)
    taken, waited = clock.gpu_ms([lambda: "own", lambda: "plain"], 10, rounds)
    return taken, waited, rounds_seen


def test_neither_way_is_always_first(clock: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, waited, seen = times(clock, monkeypatch, lambda cycles: False, 4)
    assert [name for name, _ in seen] == ["own", "plain", "plain", "own"] * 2
    assert [len(each) for each in taken] == [4, 4]
    assert waited == [0, 0]


def test_the_gpu_sleeps_long_enough(clock: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    _, waited, seen = times(clock, monkeypatch, lambda cycles: cycles < 400, 3)
    assert [cycles for name, cycles in seen if name == "own"] == [100, 200, 400, 400, 400]
    assert waited == [0, 0]


def test_a_queue_that_is_full_is_not_waited_for_ever(
    clock: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, waited, seen = times(clock, monkeypatch, lambda cycles: True, 15)
    assert max(cycles for _, cycles in seen) == 100 * 2**clock.LATE
    assert [len(each) for each in taken] == [15, 15]
    assert waited == [15, 15], "and it is told"
