import threading

import pytest

from torch_diode.heuristics.time_limit import call_within


def test_results_and_errors_are_those_of_the_call():
    assert call_within(60, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call_within(60, lambda: 1 // 0)


def test_a_call_that_does_not_return_is_left():
    with pytest.raises(TimeoutError):
        call_within(0.01, threading.Event().wait)
