from collections.abc import Callable

import pytest

from tests.scripts import load_script

clock = load_script("benchmarks", "_models_clock")


def times(
    monkeypatch: pytest.MonkeyPatch, late: Callable[[int], bool], rounds: int
) -> tuple[list[list[float]], list[int], list[tuple[str, int]]]:
    """Two variants in turn; whether a round is late depends on the sleep before it."""
    seen: list[tuple[str, int]] = []

    def one_round(call: Callable[[], str], calls: int, cycles: int) -> tuple[float, bool]:
        seen.append((call(), cycles))
        return 1.0, late(cycles)

    monkeypatch.setattr(clock, "_cycles", lambda call, calls: 100)
    monkeypatch.setattr(clock, "_round", one_round)
    taken, waited = clock.gpu_ms([lambda: "own", lambda: "plain"], 10, rounds)
    assert [len(each) for each in taken] == [rounds, rounds]
    return taken, waited, seen


def test_variants_alternate_which_goes_first(monkeypatch):
    _, waited, seen = times(monkeypatch, lambda cycles: False, 4)
    assert [name for name, _ in seen] == ["own", "plain", "plain", "own"] * 2
    assert waited == [0, 0]


def test_the_sleep_doubles_until_the_queue_is_full_in_time(monkeypatch):
    _, waited, seen = times(monkeypatch, lambda cycles: cycles < 400, 3)
    assert [cycles for name, cycles in seen if name == "own"] == [100, 200, 400, 400, 400]
    assert waited == [0, 0]
