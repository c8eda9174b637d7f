"""numpy's number of threads is restored, whichever user leaves last."""

import threading

import pytest

from torch_diode.model.serving.one_thread import _openblas, one_thread

functions = _openblas()
pytestmark = pytest.mark.skipif(functions is None, reason="numpy is not linked with OpenBLAS")


@pytest.fixture
def threads():
    """OpenBLAS set to two threads, and a function that returns its setting."""
    get, put = functions
    before = get()
    put(2)
    yield get
    put(before)


def test_one_inside_and_the_same_as_before_outside(threads):
    with one_thread():
        assert threads() == 1
        with one_thread():
            assert threads() == 1
        assert threads() == 1
    assert threads() == 2


def test_an_error_inside_changes_nothing(threads):
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert threads() == 2


def test_overlapping_threads_restore_it_together(threads):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_thread():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert entered.wait(10)
    assert threads() == 1
    leave.set()
    thread.join()
    assert threads() == 2
