from __future__ import annotations

import functools
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_diode.heuristics.fingerprint import callable_fingerprint_text
from torch_diode.types.candidate import Candidate, TritonGEMMConfig


def made(source: str) -> Any:
    namespace: dict[str, Any] = {"__name__": "made"}
    exec(source, namespace)
    return namespace["f"]


def test_a_global_constant_is_part_of_what_a_function_does() -> None:
    one = made("LIMIT = 1\ndef f(x): return x < LIMIT")
    two = made("LIMIT = 2\ndef f(x): return x < LIMIT")
    assert callable_fingerprint_text(one) != callable_fingerprint_text(two)


def test_a_function_it_calls_in_the_same_module_is_followed() -> None:
    one = made("def g(x): return x\ndef f(x): return g(x)")
    two = made("def g(x): return -x\ndef f(x): return g(x)")
    assert callable_fingerprint_text(one) != callable_fingerprint_text(two)


def test_functions_that_call_one_another_end() -> None:
    text = "def g(x): return f(x - 1) if x else 0\ndef f(x): return g(x)"
    assert callable_fingerprint_text(made(text)) == callable_fingerprint_text(made(text))


def test_a_local_function_that_calls_itself_ends() -> None:
    def outer() -> Any:
        def inner(x: int) -> int:
            return inner(x - 1) if x else 0

        return inner

    assert callable_fingerprint_text(outer()) == callable_fingerprint_text(outer())


def test_defaults_and_inner_functions_count() -> None:
    texts = {
        tuple(callable_fingerprint_text(made(source)))
        for source in (
            "def f(x, y=1): return x",
            "def f(x, y=2): return x",
            "def f(x, *, y=2): return x",
            "def f(x): return (lambda z: z)(x)",
            "def f(x): return (lambda z: -z)(x)",
        )
    }
    assert len(texts) == 5


def test_addresses_in_memory_do_not_count() -> None:
    class Thing:
        pass

    def around(value: Any) -> Any:
        return lambda: value

    assert callable_fingerprint_text(around(Thing())) == callable_fingerprint_text(around(Thing()))


def test_the_content_of_an_array_counts() -> None:
    def around(value: Any) -> Any:
        return lambda: value

    assert callable_fingerprint_text(around(np.zeros(3))) == callable_fingerprint_text(
        around(np.zeros(3))
    )
    assert callable_fingerprint_text(around(np.zeros(3))) != callable_fingerprint_text(
        around(np.ones(3))
    )


class Rule:
    """Called like a function, with state."""

    def __init__(self, size: Any) -> None:
        self.size = size

    def __call__(self, x: Any) -> Any:
        return x == self.size

    def method(self, x: Any) -> Any:
        return x < self.size


def doubled(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(x: Any) -> Any:
        return fn(2 * x)

    return wrapper


class Slotted:
    __slots__ = ("size",)

    def __init__(self, size: Any) -> None:
        self.size = size


def test_the_state_of_what_is_called_counts() -> None:
    one, other, again = Rule(1), Rule(2), Rule(1)
    by_size = [
        lambda rule: rule,
        lambda rule: rule.method,
        lambda rule: functools.partial(Rule.method, rule),
        lambda rule: functools.lru_cache(lambda x: rule(x)),
        lambda rule: lambda x: rule.method(x),
        lambda rule: made_with(rule),
    ]
    for make in by_size:
        assert callable_fingerprint_text(make(one)) != callable_fingerprint_text(make(other))
        assert callable_fingerprint_text(make(one)) == callable_fingerprint_text(make(again))
    texts = [
        callable_fingerprint_text(functools.partial(Rule.method, Slotted(size)))
        for size in (1, 2, 1)
    ]
    assert texts[0] == texts[2] != texts[1]


def made_with(rule: Any) -> Any:
    """A function that names the rule as a global."""
    namespace: dict[str, Any] = {"__name__": "made", "rule": rule}
    exec("def f(x): return rule(x)", namespace)
    return namespace["f"]


def test_a_decorator_is_part_of_what_a_function_does() -> None:
    def plain(x: Any) -> Any:
        return x

    assert callable_fingerprint_text(plain) != callable_fingerprint_text(doubled(plain))
    assert callable_fingerprint_text(doubled(plain)) == callable_fingerprint_text(doubled(plain))


def test_what_hides_its_state_is_of_one_object_alone() -> None:
    def around(value: Any) -> Any:
        return lambda: value

    lock, other = threading.Lock(), threading.Lock()
    assert callable_fingerprint_text(around(lock)) == callable_fingerprint_text(around(lock))
    assert callable_fingerprint_text(around(lock)) != callable_fingerprint_text(around(other))


def test_an_object_that_holds_itself_ends() -> None:
    rule = Rule(1)
    rule.size = {"rule": rule}
    assert callable_fingerprint_text(rule) == callable_fingerprint_text(rule)


def test_what_has_no_code_is_named() -> None:
    assert callable_fingerprint_text(len) == ["builtins.len"]


class Told:
    """Says the same of itself whatever it holds."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __repr__(self) -> str:
        return "Told()"


@dataclass
class Silent:
    shown: int
    hidden: int = field(default=0, repr=False)


def linear(weight: float) -> torch.nn.Linear:
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(weight)
    return layer


def large(last: float) -> torch.Tensor:
    values = torch.zeros(100, 100)
    values[50, 50] = last
    return values


@pytest.mark.parametrize(
    "make",
    [Told, linear, large, lambda n: Silent(1, int(n)), lambda n: deque([large(n)]), torch.tensor],
    ids=["own text", "module", "large tensor", "dataclass", "inside another", "one number"],
)
def test_what_a_text_leaves_out_counts(make: Any) -> None:
    def closing(held: Any) -> Any:
        return lambda problem, candidates: candidates if held else None

    one, other = (
        callable_fingerprint_text(closing(make(1.0))),
        callable_fingerprint_text(closing(make(2.0))),
    )
    assert one != other
    assert one == callable_fingerprint_text(closing(make(1.0)))


def test_it_is_read_while_a_compile_traces() -> None:
    held = large(3.0)
    rule = lambda problem, candidates: held  # noqa: E731
    outside = callable_fingerprint_text(rule)
    with FakeTensorMode():
        assert callable_fingerprint_text(rule) == outside


def test_plain_values_are_the_same_in_every_process() -> None:
    program = (
        "from dataclasses import dataclass\n"
        "from pathlib import Path\n"
        "from torch_diode.heuristics.fingerprint import callable_fingerprint_text\n"
        "@dataclass\nclass Held:\n    names: frozenset\n"
        "HELD = (Held(frozenset('abcdef')), Path('a'), {1: {'x', 'y', 'z'}}, range(3), ...)\n"
        "def f(x): return HELD\n"
        "print(callable_fingerprint_text(f))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


SMALL, BIG = (Candidate("triton::mm", TritonGEMMConfig(n, n, 32, 8, 3, 4)) for n in (32, 64))


class Counted(int):
    """A number that can hold more."""


class Late:
    @functools.cached_property
    def worked_out(self) -> int:
        return 1


def returning(value: Any) -> Any:
    return lambda: value


def made_by(number: int) -> Any:
    def inner() -> int:
        return number

    return inner


DIFFERING: dict[str, tuple[Any, Any]] = {
    "one thing twice": ([SMALL, BIG, SMALL], [SMALL, BIG, BIG]),
    "in a dict": ({1: SMALL, 2: BIG, 3: SMALL}, {1: SMALL, 2: BIG, 3: BIG}),
    "dtypes": ([torch.half, torch.int8, torch.half], [torch.half, torch.int8, torch.int8]),
    "functions of one code": ([made_by(1), made_by(2)], [made_by(1), made_by(3)]),
    "methods of C": ({1: 1}.get, {1: 2}.get),
    "modules": (os, sys),
    "a number's class": (Counted(1), Counted(2)),
    "exceptions": (ValueError("a"), ValueError("b")),
    "conjugates": (torch.tensor([1j]), torch.tensor([1j]).conj()),
    "views": (torch.zeros(4)[:2], torch.ones(4)[:2]),
    "transposes": (torch.arange(6).reshape(2, 3), torch.arange(6).reshape(2, 3).t()),
    "objects in arrays": (np.array([SMALL]), np.array([BIG])),
}


@pytest.mark.parametrize("case", DIFFERING)
def test_what_differs_anywhere_differs(case: str) -> None:
    one, other = DIFFERING[case]
    assert callable_fingerprint_text(returning(one)) != callable_fingerprint_text(returning(other))
    assert callable_fingerprint_text(returning(one)) == callable_fingerprint_text(returning(one))


def test_what_an_object_keeps_for_itself_changes_nothing() -> None:
    late, logger = Late(), logging.getLogger("tests.code_text")
    before = callable_fingerprint_text(returning((late, logger)))
    assert late.worked_out == 1
    logger.isEnabledFor(logging.DEBUG)
    assert callable_fingerprint_text(returning((late, logger))) == before


def test_a_tensor_without_numbers_of_its_own_is_of_this_process_alone() -> None:
    with FakeTensorMode():
        fake, another = torch.zeros(3), torch.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = callable_fingerprint_text(returning(fake))
        assert callable_fingerprint_text(returning(fake)) == text
        assert callable_fingerprint_text(returning(another)) != text


def test_what_leads_back_to_itself_ends() -> None:
    ring = Told(None)
    ring.held = [ring, 1]
    again = Told(None)
    again.held = [again, 2]
    assert callable_fingerprint_text(returning(ring)) != callable_fingerprint_text(returning(again))
    endless: deque[Any] = deque()
    endless.append(endless)
    assert callable_fingerprint_text(returning(endless))
