"""numpy's number of threads is restored, whichever user leaves last."""

import threading
from dataclasses import replace

import pytest

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.model.registry import shipped_model
from torch_diode.model.serving.one_thread import _openblas, one_thread
from torch_diode.types.problem import MMShape

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


@pytest.mark.parametrize("name", ["nvidia-h200", "amd-zen5"])
def test_predictions_are_the_same_to_the_last_digit_whatever_the_number_of_threads(name):
    get, put = functions
    chip = replace(known(name), threads=2 if name == "amd-zen5" else 0)
    dtype = "float32" if chip.threads else "bfloat16"
    problems = [MMShape("mm", m, 1024, 4096, dtype=dtype) for m in (16, 512, 4096)]
    before, found = get(), []
    try:
        for threads in (1, 2):
            put(threads)
            model = shipped_model(chip).load()
            spaces = [(problem, candidate_space(problem, chip)) for problem in problems]
            found.append([model.predict_us(p, space, chip)[0].tolist() for p, space in spaces])
    finally:
        put(before)
    assert found[0] == found[1]
