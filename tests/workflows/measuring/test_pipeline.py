"""Problems through two crews of real processes."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from multiprocessing.connection import wait
from types import SimpleNamespace
from typing import Any

import pytest

from torch_diode.collection.workers.pool import ProgressMarker, WorkerError, WorkerPool
from workflows.measuring import pipeline
from workflows.measuring.jobs import catch_job_errors
from workflows.measuring.pipeline import Pipeline

FOREVER = 1e9


class Letters:
    """Problems are words and kernels their letters; a word's time is all of them together."""

    def __init__(self, *words: str, enough: int = 1) -> None:
        self.words, self.enough = words, enough
        self.times: dict[str, str] = {}
        self.compiled_keys: list[Hashable] = []
        self.given: list[str] = []
        self.saved: list[int] = []

    def prepare(self, number: int) -> str:
        return f"prepare {self.words[number]}"

    def kernels(self, number: int, answer: str) -> dict[Hashable, str]:
        return {letter: f"compile {letter}" for letter in answer}

    def compiled(self, key: Hashable, answer: str) -> str:
        self.compiled_keys.append(key)
        return "no such letter" if answer == "?" else ""

    def is_enough(self, number: int, keys: Sequence[Hashable]) -> bool:
        return len(keys) >= self.enough

    def time(self, number: int, keys: Sequence[Hashable]) -> tuple[str, list[Hashable]]:
        self.given.append(self.words[number])
        return self.words[number], list(keys)

    def timed(self, number: int, answer: str) -> None:
        self.times[self.words[number]] = answer

    def save(self) -> None:
        self.saved.append(len(self.times))


def compiler(_: ProgressMarker) -> Callable[[str], str]:
    def answer(order: str) -> str:
        what, text = order.split()
        if "!" in text:
            raise ValueError(f"{what} of {text}")
        if "#" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "~":
            time.sleep(FOREVER)
        return text

    return catch_job_errors(answer)


def bench(_: ProgressMarker) -> Callable[[tuple[str, list[str]]], str]:
    def answer(order: tuple[str, list[str]]) -> str:
        word, letters = order
        if word == "broken":
            raise ValueError(word)
        if word == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "endless":
            time.sleep(FOREVER)
        return "".join(letters)

    return catch_job_errors(answer)


def run(recipe: Letters, seconds: float = 120, members: int = 2) -> Counter[str]:
    faults: Counter[str] = Counter()
    with (
        WorkerPool[Any, Any]([compiler] * members) as compilers,
        WorkerPool[int, Any]([bench]) as benches,
    ):
        work = Pipeline(recipe, range(len(recipe.words)), faults)
        work.run(compilers, benches, time.monotonic() + seconds)
    return faults


def test_every_problem_is_timed_with_all_its_kernels():
    recipe = Letters("cab", "bad", "a")
    assert run(recipe) == {}
    assert recipe.times == {"cab": "cab", "bad": "bad", "a": "a"}
    assert recipe.saved[-1] == 3


def test_a_kernel_of_several_problems_is_compiled_once():
    recipe = Letters("cab", "bad", "a")
    run(recipe)
    assert sorted(map(str, recipe.compiled_keys)) == ["a", "b", "c", "d"]


def test_a_problem_begun_is_compiled_before_the_next():
    recipe = Letters("cab", "fed")
    run(recipe, members=1)
    assert recipe.compiled_keys == ["c", "a", "b", "f", "e", "d"]


def test_a_problem_goes_without_the_kernels_that_fail():
    recipe = Letters("a?b")
    recipe.kernels = lambda number, answer: {c: f"compile {c}" for c in "a?b#!"}  # type: ignore[method-assign]
    faults = run(recipe)
    assert recipe.times == {"a?b": "ab"}
    assert faults == {
        "no such letter": 1,
        "compiler ended by SIGKILL": 1,
        "ValueError: compile of !": 1,
    }


def test_what_cannot_be_prepared_or_timed_costs_no_other_problem():
    recipe = Letters("a!", "deadly", "broken", "b")
    faults = run(recipe)
    assert recipe.times == {"b": "b"}
    assert faults == {
        "lowering: ValueError: prepare of a!": 1,
        "bench: ended by SIGKILL": 1,
        "bench: ValueError: broken": 1,
    }


def test_in_the_end_enough_kernels_will_do(monkeypatch):
    monkeypatch.setattr(pipeline, "LAST_SECONDS", FOREVER)
    recipe = Letters("ab~", enough=2)
    assert run(recipe) == {}
    assert recipe.times == {"ab~": "ab"}


def test_in_the_end_too_few_will_not():
    recipe = Letters("ab~", enough=3)
    assert run(recipe, seconds=3) == {}
    assert recipe.times == {}
    assert recipe.saved[-1] == 0


def test_what_takes_too_long_is_left_and_the_rest_saved(monkeypatch):
    recipe = Letters("a", "endless")
    clock = itertools.count()

    def monotonic() -> float:
        """Stands still until all is given out."""
        return float(next(clock)) if recipe.given == ["a", "endless"] else 0.0

    monkeypatch.setattr(pipeline, "time", SimpleNamespace(monotonic=monotonic))
    with WorkerPool[Any, Any]([compiler]) as compilers, WorkerPool[int, Any]([bench]) as benches:
        Pipeline(recipe, [0, 1], Counter()).run(compilers, benches, 3.0)
    assert recipe.times == {"a": "a"}
    assert recipe.saved[-1] == 1


def test_results_are_saved_when_a_crew_gives_up():
    def dead(_: ProgressMarker) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    recipe = Letters("a")
    with WorkerPool[Any, Any]([compiler]) as compilers, WorkerPool[int, Any]([dead]) as benches:
        benches.start()
        assert wait(benches.connections(), 60)  # it is gone before there is anything to time
        with pytest.raises(WorkerError, match="SIGKILL"):
            Pipeline(recipe, [0], Counter()).run(compilers, benches, time.monotonic() + 60)
    assert recipe.saved == [0]
