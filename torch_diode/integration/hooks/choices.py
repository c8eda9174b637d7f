"""The choices handler: Inductor's own, with the matmul hook decided by a heuristic."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch._inductor.choices import InductorChoices

import torch_diode
from torch_diode.heuristics.base import digest
from torch_diode.integration.deciding.decider import Decider
from torch_diode.integration.deciding.request import ChoiceRequest, ReplayableIterator
from torch_diode.integration.settings import Settings

if TYPE_CHECKING:
    from torch_diode.heuristics.base import Heuristic


class DiodeInductorChoices(InductorChoices):
    """Decides mm, addmm, bmm and baddbmm; every other method is the next handler's.

    Registration puts this class before that of torch's handler. It can also be installed by hand:
    `V.set_choices_handler(DiodeInductorChoices(my_heuristic))`. Three things are missing then: with
    max-autotune, other choices for the same matmul are not dropped (`keep_single_choice`); torch
    decides how weights of frozen graphs are packed; and its graph cache does not distinguish such
    handlers.
    """

    decider: Decider

    def __init__(self, heuristic: Heuristic | None = None, **settings: Any) -> None:
        super().__init__()
        self.decider = Decider(Settings().changed(heuristic=heuristic, **settings))

    def uuid(self) -> str:
        """Torch's cache key for a handler set through its config."""
        settings = self.decider.settings
        own = settings.heuristic.fingerprint() if settings.heuristic is not None else "default"
        others = replace(settings, heuristic=None)
        parent = getattr(super(), "uuid", None)
        return f"torch-diode:{own}:{digest(torch_diode.__version__, str(others))}" + (
            f"+{parent()}" if callable(parent) else ""
        )

    def _finalize_template_configs(
        self,
        template_choices: dict[str, Generator[Any, None, None]],
        kernel_inputs: Any,
        templates: list[Any],
        op_name: str,
        kwarg_overrides: dict[str, dict[str, Any]] | None = None,
    ) -> list[Any]:
        """The hook from 2.10 on: receives all templates' choices, returns those to use."""
        listed = {uid: ReplayableIterator(choices) for uid, choices in template_choices.items()}
        chosen = self.decider.decide(
            ChoiceRequest(self, op_name, kernel_inputs, templates, kwarg_overrides or {}, listed)
        )
        if chosen is not None:
            return chosen
        parent: Any = super()
        own = {uid: iter(choices) for uid, choices in listed.items()}
        choices: list[Any] = parent._finalize_template_configs(
            own, kernel_inputs, templates, op_name, kwarg_overrides
        )
        return choices

    def get_mm_configs(
        self,
        kernel_inputs: Any,
        layout: Any,
        templates: list[Any],
        op_name: str,
        kwarg_overrides: dict[str, dict[str, Any]] | None = None,
    ) -> Generator[Any, None, None]:
        """The hook of 2.9, called once per template."""
        parent: Any = super()

        def own(*template: Any) -> Iterator[Any]:
            given = (kernel_inputs, layout, list(template), op_name, kwarg_overrides)
            yield from parent.get_mm_configs(*given)

        listed = {each.uid: ReplayableIterator(own(each)) for each in templates}
        chosen = self.decider.decide(
            ChoiceRequest(
                self, op_name, kernel_inputs, templates, kwarg_overrides or {}, listed, layout
            )
        )
        yield from own(*templates) if chosen is None else chosen


def bound_to(decider: Decider) -> type[DiodeInductorChoices]:
    """The handler class with this decider as a class attribute: instances need no state."""
    return type("DiodeInductorChoices", (DiodeInductorChoices,), {"decider": decider})
