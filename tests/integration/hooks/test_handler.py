"""Our hooks before torch's handler, whoever put it there, and nothing left behind."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import warnings

import pytest
from torch._inductor.choices import InductorChoices
from torch._inductor.virtualized import V, threadlocal

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from torch_diode.integration import registration
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.integration.hooks.handler import compose


class Stateful(InductorChoices):
    def __init__(self) -> None:
        self.seen = 0

    def look(self) -> int:
        self.seen += 1
        return self.seen


def test_a_composed_handler_shares_the_state_of_the_one_behind_it() -> None:
    handler = Stateful()
    composed = compose(handler, [type("Mixin", (), {"extra": 1})])
    assert composed.look() == 1
    assert handler.look() == 2
    assert composed.seen == 2
    assert isinstance(composed, Stateful)


def test_the_same_handler_is_composed_once() -> None:
    registration.enable(Forced(CONFIG))
    assert V.choices is V.choices


def test_what_torch_puts_back_after_a_scope_is_its_own() -> None:
    registration.enable(Forced(CONFIG))
    assert isinstance(V.choices, DiodeInductorChoices)
    with V.set_choices_handler(Stateful()):
        assert isinstance(V.choices, DiodeInductorChoices)
    kept = threadlocal.__torchinductor_choices
    assert type(kept) is InductorChoices
    registration.disable()
    assert V.choices is kept


def test_a_handler_that_cannot_be_composed_with_is_left_alone() -> None:
    class Sealed(InductorChoices):
        @property
        def __dict__(self) -> dict[str, object]:  # type: ignore[override]
            raise TypeError("sealed")

    registration.enable(Forced(CONFIG))
    sealed = Sealed()
    with V.set_choices_handler(sealed):
        with pytest.warns(DiodeWarning, match="sealed"):
            found = V.choices
        assert found is sealed
        assert V.choices is sealed


@dataclasses.dataclass
class Equal(InductorChoices):
    """Equal to others of its kind, and with no hash."""

    factor: int = 3
    seen: list[int] = dataclasses.field(default_factory=list, compare=False)


def test_handlers_are_told_apart_by_who_they_are() -> None:
    registration.enable(Forced(CONFIG))
    one, other = Equal(), Equal()
    for number, handler in enumerate((one, other)):
        with V.set_choices_handler(handler):
            assert isinstance(V.choices, DiodeInductorChoices)
            V.choices.seen.append(number)
    assert (one.seen, other.seen) == ([0], [1])


def test_a_handler_that_is_gone_is_forgotten() -> None:
    registration.enable(Forced(CONFIG))
    known = registration._registration.handler._composed
    with V.set_choices_handler(Equal()):
        assert isinstance(V.choices, DiodeInductorChoices)
        before = len(known)
    gc.collect()
    assert len(known) == before - 1


def test_a_handler_with_slots_is_left_alone() -> None:
    class Slotted(InductorChoices):
        __slots__ = ("factor",)

        def __init__(self) -> None:
            self.factor = 3

    registration.enable(Forced(CONFIG))
    slotted = Slotted()
    with V.set_choices_handler(slotted), pytest.warns(DiodeWarning, match="__slots__"):
        assert V.choices is slotted


class Proxy:
    """All of torch's methods, and none of its class: torch asks for no more."""

    def __init__(self) -> None:
        self.behind = InductorChoices()

    def __getattr__(self, name: str) -> object:
        return getattr(self.behind, name)


class Unreferable:
    """Nothing can refer to it weakly."""

    __slots__ = ("behind",)

    def __init__(self) -> None:
        self.behind = InductorChoices()

    def __getattr__(self, name: str) -> object:
        return getattr(self.behind, name)


@pytest.mark.parametrize("kind", [Proxy, Unreferable])
def test_a_handler_of_another_class_stays_the_one_that_is_asked(kind: type) -> None:
    registration.enable(Forced(CONFIG))
    handler = kind()
    with V.set_choices_handler(handler), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert V.choices is handler


def test_pickled_it_is_the_handler_behind() -> None:
    """Torch pickles it to compile in another process, which may have no torch-diode."""
    registration.enable(Forced(CONFIG))
    handler = Stateful()
    handler.seen = 7
    with V.set_choices_handler(handler):
        composed = V.choices
        assert isinstance(composed, DiodeInductorChoices)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(composed, protocol))
            assert type(again) is Stateful
            assert again.seen == 7
