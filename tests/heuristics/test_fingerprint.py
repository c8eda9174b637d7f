import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from torch_diode import Candidate, CustomHeuristic, TritonGEMMConfig
from torch_diode.heuristics.fingerprint import code_text

SMALL, BIG = (Candidate("triton::mm", TritonGEMMConfig(n, n, 32)) for n in (32, 64))


def executed(source: str) -> Any:
    namespace: dict[str, Any] = {"__name__": "executed", "np": np}
    exec(source, namespace)
    return namespace["f"]


def returning(value: Any) -> Callable[..., Any]:
    return lambda *_: value


def doubled(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(x: Any) -> Any:
        return fn(2 * x)

    return wrapper


def test_two_lambdas_on_one_line_differ():
    first, second = (lambda x: x), (lambda x: -x)
    assert code_text(first) != code_text(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("LIMIT = 1\ndef f(x): return x < LIMIT", "LIMIT = 2\ndef f(x): return x < LIMIT"),
        ("def g(x): return x\ndef f(x): return g(x)", "def g(x): return 1\ndef f(x): return g(x)"),
        ("def f(x, y=1): return x", "def f(x, y=2): return x"),
        ("def f(x): return (lambda z: z)(x)", "def f(x): return (lambda z: -z)(x)"),
        ("def f(x): return x.M", "def f(x): return x.N"),
        ("def f(x): return f.n\nf.n = 1", "def f(x): return f.n\nf.n = 2"),
        ("def f(x): return 1", "def f(x): return 1.0"),
        (
            "A = [1, 2]\ndef f(x): return (lambda: A)()",
            "A = [2, 1]\ndef f(x): return (lambda: A)()",
        ),
    ],
)
def test_functions_that_can_decide_differently_differ(one, other):
    assert code_text(executed(one)) == code_text(executed(one))
    assert code_text(executed(one)) != code_text(executed(other))
    assert code_text(executed(one)) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        ([SMALL, BIG, SMALL], [SMALL, BIG, BIG]),
        ({1: (SMALL, {"a"})}, {1: (SMALL, {"b"})}),
        ([returning(1), returning(2)], [returning(1), returning(3)]),
        (doubled(returning(1)), doubled(returning(2))),
        (returning(1), doubled(returning(1))),
    ],
)
def test_captured_values_that_differ_anywhere_differ(one, other):
    assert code_text(returning(one)) == code_text(returning(one))
    assert code_text(returning(one)) != code_text(returning(other))
    rules = [CustomHeuristic(returning(one), name) for name in "xy"]
    assert rules[0].fingerprint() != rules[1].fingerprint()


def test_functions_that_call_one_another_end():
    names = [f"g{i}" for i in range(12)]
    calls = " + ".join(f"{name}(x)" for name in names)
    source = "\n".join(f"def {name}(x): return {calls}" for name in [*names, "f"])
    assert code_text(executed(source)) == code_text(executed(source))


def unset() -> Callable[..., Any]:
    def rule() -> Any:
        return later

    if rule is None:
        later = 1
    return rule


ring: list[Any] = []
ring.append(ring)


@pytest.mark.parametrize(
    "fn",
    [
        returning(np.zeros(3)),
        returning(threading.Lock()),
        returning({1: 1}.get),
        returning(ring),
        unset(),
        executed("class A: n = 1\ndef f(x): return A.n"),
        functools.partial(returning(1)),
        len,
    ],
)
def test_state_that_is_not_plain_has_no_text_and_a_key_per_object(fn):
    assert code_text(fn) is None
    one, other = CustomHeuristic(fn), CustomHeuristic(fn)
    assert one.fingerprint() == one.fingerprint()
    assert one.fingerprint() != other.fingerprint()


def test_a_version_stands_for_state_that_is_not_plain():
    def rule(version):
        fn = returning(np.zeros(3))
        fn.version = version  # type: ignore[attr-defined]
        return CustomHeuristic(fn)

    assert rule("1").fingerprint() == rule("1").fingerprint() != rule("2").fingerprint()
