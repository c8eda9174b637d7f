import contextvars
import threading

import pytest

from tests.attack.processes import in_fork
from torch_diode.heuristics.time_limit import call_within


def test_results_and_errors_are_those_of_the_call():
    assert call_within(60, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call_within(60, lambda: 1 // 0)


def test_a_call_that_does_not_return_is_left():
    with pytest.raises(TimeoutError):
        call_within(0.01, threading.Event().wait)


def test_calls_share_a_thread_and_one_that_hangs_keeps_its_own():
    def thread():
        return threading.current_thread()

    first = call_within(60, thread)
    assert call_within(60, thread) is first
    stop = threading.Event()
    with pytest.raises(TimeoutError):
        call_within(0.01, stop.wait)
    assert call_within(60, thread) is not first
    stop.set()


def test_a_call_inside_a_call_and_after_a_fork_has_a_thread():
    assert call_within(60, lambda: call_within(60, lambda: 7)) == 7
    assert in_fork(lambda: call_within(60, lambda: 8)) == "8"


def test_context_variables_are_those_of_the_caller():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(3)
    assert call_within(60, variable.get) == 3
