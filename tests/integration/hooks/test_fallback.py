"""Whatever happens inside the guard, nothing gets out."""

from __future__ import annotations

import warnings

import pytest

from torch_diode.integration.hooks.fallback import (
    Abstained,
    DiodeWarning,
    Fallback,
    NotApplicable,
    cause_of,
)
from torch_diode.types.errors import FileFaultError


def fail(text: str) -> None:
    raise ValueError(text)


def abstain(reason: str) -> None:
    raise Abstained(reason)


def refuse() -> None:
    raise NotApplicable


def test_an_answer_is_passed_on() -> None:
    assert Fallback().run(lambda: [1]) == [1]


def test_an_abstention_is_counted_and_silent() -> None:
    fallback = Fallback()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fallback.run(lambda: abstain("no row")) is None
        assert fallback.run(refuse) is None
    assert fallback.counters.abstentions == {"no row": 1}


def test_a_fault_warns_once_per_cause_and_is_counted_each_time() -> None:
    fallback = Fallback()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in ("shape 12", "shape 34", "other"):
            assert fallback.run(lambda text=text: fail(text)) is None  # type: ignore[misc]
    assert [str(w.message).rpartition("torch: ")[2] for w in caught] == [
        "ValueError: shape 12 in fail of test_fallback.py",
        "ValueError: other in fail of test_fallback.py",
    ]
    assert {w.category for w in caught} == {DiodeWarning}
    assert fallback.counters.fallbacks == {
        "ValueError: shape # in fail of test_fallback.py": 2,
        "ValueError: other in fail of test_fallback.py": 1,
    }


def test_addresses_make_no_causes_and_there_are_only_so_many() -> None:
    fallback = Fallback()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(200):
            fallback.run(lambda n=number: fail(f"no idea of <object at {hex(n)}>"))  # type: ignore[misc]
        assert len(caught) == len(fallback.counters.fallbacks) == 1
        for number in range(200):
            fallback.run(lambda n=number: fail("x" * n))  # type: ignore[misc]
    assert len(caught) == len(fallback.counters.fallbacks) <= 101
    assert fallback.counters.fallbacks.total() == 400


def test_a_fault_that_says_nothing_is_known_by_its_place() -> None:
    def mute() -> None:
        raise AssertionError

    with pytest.raises(AssertionError) as caught:
        mute()
    assert cause_of(caught.value) == "AssertionError in mute of test_fallback.py"


def test_an_interrupt_passes_through() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Fallback().run(interrupt)


def test_problems_that_differ_in_their_sizes_only_are_one_cause() -> None:
    causes = {cause_of(ValueError(f"no idea for mm:{n}x256x128:float16:nn")) for n in (64, 128)}
    assert causes == {"ValueError: no idea for mm:#:float16:nn"}


def test_a_fault_that_cannot_say_what_it_is_stays_inside() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("nor why")

    def mute() -> None:
        raise MuteError

    fallback = Fallback()
    with pytest.warns(DiodeWarning, match="MuteError in mute"):
        assert fallback.run(mute) is None


def test_a_warning_says_all_of_a_fault_of_ours() -> None:
    fallback = Fallback()
    path = "/" + "folder/" * 40 + "model.pt"
    with pytest.warns(DiodeWarning, match="no such file; check the path"):
        fallback.run(lambda: refuse_file(path))


def refuse_file(path: str) -> None:
    raise FileFaultError(f"{path}: no such file; check the path")
