"""The model benchmark without its GPU: every architecture, tiny, on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarks.rehearsal import ROOT, rehearse


def test_every_model_runs_and_agrees_with_eager(tmp_path: Path) -> None:
    output = tmp_path / "models.json"
    data, printed = rehearse("models_live.py", output, "--modes", "reduce-overhead")
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
    data, _ = rehearse("models_live.py", output, *options)
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
    before = len(data["rows"])
    again, _ = rehearse("models_live.py", output, *options)
    assert len(again["rows"]) == before, "what is there is not measured again"


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
