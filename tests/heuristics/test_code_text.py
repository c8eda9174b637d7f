from __future__ import annotations

from typing import Any

import numpy as np

from torch_diode.heuristics.code_text import function_text


def made(source: str) -> Any:
    namespace: dict[str, Any] = {"__name__": "made"}
    exec(source, namespace)
    return namespace["f"]


def test_a_global_constant_is_part_of_what_a_function_does() -> None:
    one = made("LIMIT = 1\ndef f(x): return x < LIMIT")
    two = made("LIMIT = 2\ndef f(x): return x < LIMIT")
    assert function_text(one) != function_text(two)


def test_a_function_it_calls_in_the_same_module_is_followed() -> None:
    one = made("def g(x): return x\ndef f(x): return g(x)")
    two = made("def g(x): return -x\ndef f(x): return g(x)")
    assert function_text(one) != function_text(two)


def test_functions_that_call_one_another_end() -> None:
    text = "def g(x): return f(x - 1) if x else 0\ndef f(x): return g(x)"
    assert function_text(made(text)) == function_text(made(text))


def test_a_local_function_that_calls_itself_ends() -> None:
    def outer() -> Any:
        def inner(x: int) -> int:
            return inner(x - 1) if x else 0

        return inner

    assert function_text(outer()) == function_text(outer())


def test_defaults_and_inner_functions_count() -> None:
    texts = {
        tuple(function_text(made(source)))
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

    assert function_text(around(Thing())) == function_text(around(Thing()))


def test_the_content_of_an_array_counts() -> None:
    def around(value: Any) -> Any:
        return lambda: value

    assert function_text(around(np.zeros(3))) == function_text(around(np.zeros(3)))
    assert function_text(around(np.zeros(3))) != function_text(around(np.ones(3)))


def test_what_has_no_code_is_named() -> None:
    assert function_text(len) == ["builtins.len"]
