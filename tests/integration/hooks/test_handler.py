"""Our hooks are composed with any handler, and nothing is left behind."""

import dataclasses
import gc
import pickle
import warnings

import pytest
import torch
from torch._inductor import choices
from torch._inductor.choices import InductorChoices
from torch._inductor.virtualized import V, threadlocal

from tests.integration.cases import CONFIG, inputs
from tests.integration.forced import Forced
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import lower
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.integration.hooks.handler import compose


@pytest.fixture
def enabled():
    registration.enable(Forced(CONFIG))


class Stateful(InductorChoices):
    def __init__(self) -> None:
        self.calls = 0

    def call(self) -> int:
        self.calls += 1
        return self.calls


def test_a_composed_handler_shares_the_state_of_the_one_behind_it():
    handler = Stateful()
    composed = compose(handler, [type("Mixin", (), {"extra": 1})])
    assert composed.call() == 1
    assert handler.call() == 2
    assert composed.calls == 2
    assert isinstance(composed, Stateful)


@pytest.mark.usefixtures("enabled")
def test_torch_restores_its_own_handler_after_a_scope():
    assert isinstance(V.choices, DiodeInductorChoices)
    assert V.choices is V.choices
    with V.set_choices_handler(Stateful()):
        assert isinstance(V.choices, DiodeInductorChoices)
    own = threadlocal.__torchinductor_choices
    assert type(own) is InductorChoices
    registration.disable()
    assert V.choices is own


class Sealed(InductorChoices):
    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise TypeError("sealed")


class Slotted(InductorChoices):
    __slots__ = ("factor",)

    def __init__(self) -> None:
        self.factor = 3


@pytest.mark.usefixtures("enabled")
@pytest.mark.parametrize(("kind", "text"), [(Sealed, "sealed"), (Slotted, "__slots__")])
def test_a_handler_that_cannot_be_composed_is_left_alone(kind, text):
    handler = kind()
    with V.set_choices_handler(handler):
        with pytest.warns(DiodeWarning, match=text):
            assert V.choices is handler
        assert V.choices is handler


@dataclasses.dataclass
class Equal(InductorChoices):
    """Equal to others of its kind, and unhashable."""

    factor: int = 3
    calls: list[int] = dataclasses.field(default_factory=list, compare=False)


@pytest.mark.usefixtures("enabled")
def test_equal_handlers_are_composed_separately_and_not_kept_alive():
    composed = registration._registration.handler._composed
    one, other = Equal(), Equal()
    for number, handler in enumerate((one, other)):
        with V.set_choices_handler(handler):
            assert isinstance(V.choices, DiodeInductorChoices)
            V.choices.calls.append(number)
    assert (one.calls, other.calls) == ([0], [1])
    before = len(composed)
    del one, other, handler
    gc.collect()
    assert len(composed) == before - 2


class Unreferable:
    """All of torch's methods, but not its class: torch accepts it. Has no weak references."""

    __slots__ = ("behind",)

    def __init__(self):
        self.behind = InductorChoices()

    def __getattr__(self, name):
        return getattr(self.behind, name)


class Proxy(Unreferable):
    """The same with weak references."""


@pytest.mark.usefixtures("enabled")
@pytest.mark.parametrize("kind", [Proxy, Unreferable])
def test_a_handler_of_another_class_is_left_alone(kind):
    handler = kind()
    with V.set_choices_handler(handler), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert V.choices is handler


@pytest.mark.usefixtures("enabled")
def test_it_is_pickled_as_the_handler_behind_it():
    """Torch pickles it to compile in another process, which may have no torch-diode."""
    handler = Stateful()
    handler.calls = 7
    with V.set_choices_handler(handler):
        composed = V.choices
        assert isinstance(composed, DiodeInductorChoices)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(composed, protocol))
            assert type(again) is Stateful
            assert again.calls == 7


class Reductions(InductorChoices):
    def uuid(self) -> str:
        return "reductions"

    def should_use_cooperative_reduction(self, *args: object, **more: object) -> bool:
        return True


class Matmuls(InductorChoices):
    def uuid(self) -> str:
        return "matmuls"

    def _finalize_template_configs(self, *args: object, **more: object) -> list[object]:
        return ["theirs"]


@pytest.mark.skipif(not hasattr(choices, "register_inductor_choices"), reason="before torch 2.15")
@pytest.mark.usefixtures("fake_h200")
def test_handlers_in_torchs_own_register_are_composed_with_ours():
    choices.register_inductor_choices("reductions", Reductions)
    choices.register_inductor_choices("matmuls", Matmuls)
    try:
        registration.enable(Forced(CONFIG))
        assert lower(torch.mm, inputs("mm")).kernels == ["triton_tem_fused_0"]
        assert V.choices.should_use_cooperative_reduction(None) is True
        registration.enable(Forced(CONFIG, template="triton::none"))
        assert V.choices._finalize_template_configs({}, None, [], "conv") == ["theirs"]
    finally:
        for key in ("reductions", "matmuls"):
            choices.unregister_inductor_choices(key)
