"""The hook into a lowering: it comes first, and leaves no trace."""

import torch
from torch._inductor.lowering import lowerings

from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.lowering import LoweringHook

OPERATOR = torch.ops.aten.relu.default


def hook_of(name: str, answer: object) -> tuple[LoweringHook, list[str]]:
    hook = LoweringHook(Fallback(), name, lambda own, args, kwargs: (answer, args, kwargs))
    said: list[str] = []
    hook.install(said.append)
    return hook, said


def test_it_is_asked_in_the_place_of_torchs_lowering_until_it_is_uninstalled():
    own = lowerings[OPERATOR]
    hook, said = hook_of("relu", "mine")
    try:
        assert said == [""]
        assert lowerings[OPERATOR](1, two=2) == ("mine", (1,), {"two": 2})
    finally:
        hook.uninstall()
    assert lowerings[OPERATOR] is own


def test_an_operator_without_a_lowering_is_said():
    hook, said = hook_of("no_such_operator", None)
    hook.uninstall()
    assert said == ["Inductor has no lowering of no_such_operator"]


def test_what_someone_else_put_over_it_stays():
    own = lowerings[OPERATOR]
    hook, _ = hook_of("relu", "mine")

    def theirs(*_):
        return "theirs"

    lowerings[OPERATOR] = theirs
    try:
        hook.uninstall()
        assert lowerings[OPERATOR] is theirs
    finally:
        lowerings[OPERATOR] = own
