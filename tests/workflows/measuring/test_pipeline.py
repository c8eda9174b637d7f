"""Problems through two pools of real processes."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from multiprocessing.connection import wait
from typing import Any

import pytest

from torch_diode.collection.workers.pool import ProgressMarker, WorkerError, WorkerPool
from workflows.measuring import pipeline
from workflows.measuring.jobs import catch_job_errors
from workflows.measuring.pipeline import Pipeline

FOREVER = 1e9


class Letters:
    """Problems are words, kernels their letters, and a word's time its compiled letters."""

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
    def answer(request: str) -> str:
        what, text = request.split()
        if "!" in text:
            raise ValueError(f"{what} of {text}")
        if "#" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "~":
            time.sleep(FOREVER)
        return text

    return catch_job_errors(answer)


def bench(_: ProgressMarker) -> Callable[[tuple[str, list[str]]], str]:
    def answer(request: tuple[str, list[str]]) -> str:
        word, letters = request
        if word == "broken":
            raise ValueError(word)
        if word == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "endless":
            time.sleep(FOREVER)
        return "".join(letters)

    return catch_job_errors(answer)


def run(spec: Letters, seconds: float = 120, members: int = 2) -> Counter[str]:
    faults: Counter[str] = Counter()
    with (
        WorkerPool[Any, Any]([compiler] * members) as compilers,
        WorkerPool[int, Any]([bench]) as benches,
    ):
        work = Pipeline(spec, range(len(spec.words)), faults)
        work.run(compilers, benches, time.monotonic() + seconds)
    return faults


def test_every_problem_is_timed_with_its_kernels_each_compiled_once():
    spec = Letters("cab", "bad", "a")
    assert run(spec) == {}
    assert spec.times == {"cab": "cab", "bad": "bad", "a": "a"}
    assert spec.saved[-1] == 3
    assert sorted(map(str, spec.compiled_keys)) == ["a", "b", "c", "d"]


def test_a_problem_is_timed_without_the_kernels_that_fail():
    spec = Letters("a?b")
    spec.kernels = lambda number, answer: {c: f"compile {c}" for c in "a?b#!"}  # type: ignore[method-assign]
    faults = run(spec)
    assert spec.times == {"a?b": "ab"}
    assert faults == {
        "no such letter": 1,
        "compiler ended by SIGKILL": 1,
        "ValueError: compile of !": 1,
    }


def test_a_problem_that_fails_does_not_affect_others():
    spec = Letters("a!", "deadly", "broken", "b")
    faults = run(spec)
    assert spec.times == {"b": "b"}
    assert faults == {
        "lowering: ValueError: prepare of a!": 1,
        "bench: ended by SIGKILL": 1,
        "bench: ValueError: broken": 1,
    }


def test_near_the_deadline_enough_kernels_suffice(monkeypatch):
    monkeypatch.setattr(pipeline, "LAST_SECONDS", FOREVER)
    spec = Letters("ab~", enough=2)
    assert run(spec) == {}
    assert spec.times == {"ab~": "ab"}


def test_near_the_deadline_too_few_kernels_do_not_suffice():
    spec = Letters("ab~", enough=3)
    assert run(spec, seconds=3) == {}
    assert spec.times == {}
    assert spec.saved[-1] == 0


def test_results_are_saved_when_a_worker_pool_fails():
    def dead(_):
        os.kill(os.getpid(), signal.SIGKILL)

    spec = Letters("a")
    with WorkerPool[Any, Any]([compiler]) as compilers, WorkerPool[int, Any]([dead]) as benches:
        benches.start()
        assert wait(benches.connections(), 60)  # it is gone before there is anything to time
        with pytest.raises(WorkerError, match="SIGKILL"):
            Pipeline(spec, [0], Counter()).run(compilers, benches, time.monotonic() + 60)
    assert spec.saved == [0]
