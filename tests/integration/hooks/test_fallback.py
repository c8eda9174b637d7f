"""Whatever fails inside a step, no exception gets out."""

import subprocess
import sys
import warnings
from collections.abc import Callable

import pytest

from torch_diode.integration.hooks.fallback import (
    Abstained,
    DiodeWarning,
    Fallback,
    NotApplicable,
    cause_of,
)
from torch_diode.types.errors import FileFaultError


def fail(fault: BaseException) -> None:
    raise fault


def failing(text: str) -> Callable[[], None]:
    return lambda: fail(ValueError(text))


def test_an_abstention_is_counted_without_a_warning():
    fallback = Fallback()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fallback.run(lambda: fail(Abstained("no row"))) is None
        assert fallback.run(lambda: fail(NotApplicable())) is None
    assert fallback.counters.abstentions == {"no row": 1}


def test_an_error_warns_once_per_cause_and_is_counted_each_time():
    fallback = Fallback()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in ("shape 12", "shape 34", "other"):
            assert fallback.run(failing(text)) is None
    assert [str(w.message).rpartition("torch: ")[2] for w in caught] == [
        "ValueError: shape 12 in fail of test_fallback.py",
        "ValueError: other in fail of test_fallback.py",
    ]
    assert {w.category for w in caught} == {DiodeWarning}
    assert fallback.counters.fallbacks == {
        "ValueError: shape # in fail of test_fallback.py": 2,
        "ValueError: other in fail of test_fallback.py": 1,
    }


def test_addresses_make_no_causes_and_the_number_of_causes_is_bounded():
    fallback = Fallback()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(200):
            fallback.run(failing(f"unknown <object at {hex(number)}>"))
        assert len(caught) == len(fallback.counters.fallbacks) == 1
        for number in range(200):
            fallback.run(failing("x" * number))
    assert len(caught) == len(fallback.counters.fallbacks) <= 101
    assert fallback.counters.fallbacks.total() == 400


def test_problems_that_differ_only_in_their_sizes_are_one_cause():
    causes = {cause_of(ValueError(f"unknown mm:{n}x256x128:float16:nn")) for n in (64, 128)}
    assert causes == {"ValueError: unknown mm:#:float16:nn"}


def test_an_interrupt_passes_through():
    with pytest.raises(KeyboardInterrupt):
        Fallback().run(lambda: fail(KeyboardInterrupt()))


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot be printed")


@pytest.mark.parametrize("fault", [AssertionError(), UnprintableError()])
def test_an_error_without_a_message_is_known_by_its_place(fault):
    with pytest.warns(DiodeWarning, match=f"{type(fault).__name__} in fail of test_fallback.py"):
        assert Fallback().run(lambda: fail(fault)) is None


def test_a_warning_has_all_of_a_diode_errors_message():
    path = "/" + "folder/" * 40 + "model.pt"
    with pytest.warns(DiodeWarning, match="no such file; check the path"):
        Fallback().run(lambda: fail(FileFaultError(f"{path}: no such file; check the path")))


@pytest.mark.parametrize("fault", [SystemExit(3), GeneratorExit()])
def test_not_even_an_exit_gets_out_but_an_interrupt_does(fault):
    fallback = Fallback()
    with pytest.warns(DiodeWarning, match=type(fault).__name__):
        assert fallback.run(lambda: fail(fault)) is None
    with pytest.raises(KeyboardInterrupt):
        fallback.run(lambda: fail(KeyboardInterrupt()))


def test_a_warning_points_at_the_users_rule_or_else_at_the_users_call():
    in_the_rule = fail.__code__.co_firstlineno + 1
    with pytest.warns(DiodeWarning) as caught:
        Fallback().run(failing("in the rule"))
    assert (caught[0].filename, caught[0].lineno) == (__file__, in_the_rule)
    with pytest.warns(DiodeWarning) as caught:
        Fallback().report(ValueError("of no code of the user's"))
    assert caught[0].filename == __file__


def test_without_a_file_of_the_users_it_points_at_the_outermost_code():
    program = f"from {Fallback.__module__} import Fallback\nFallback().report(ValueError('x'))"
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stderr.startswith("<string>:2: DiodeWarning: ")
