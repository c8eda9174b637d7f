"""The choices handler: Inductor's own, with the matmul hook answered by a heuristic."""

from __future__ import annotations

from collections.abc import Generator
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
    """Answers for mm, addmm, bmm and baddbmm; everything else is the handler's it is put before.

    Registration puts it before whatever handler torch has. By hand:
    `V.set_choices_handler(DiodeInductorChoices(my_heuristic))`. Then nobody looks at the whole list
    Inductor collects (`answer.keep_single_choice`), which matters with max-autotune alone, and torch's
    graph cache does not tell one such handler from another.
    """

    decider: Decider

    def __init__(self, heuristic: Heuristic | None = None, **settings: Any) -> None:
        super().__init__()
        self.decider = Decider(Settings().changed(heuristic=heuristic, **settings))

    def uuid(self) -> str:
        """What torch puts into its cache keys for a handler set through its config."""
        settings = self.decider.settings
        own = settings.heuristic.fingerprint() if settings.heuristic is not None else "default"
        rest = replace(settings, heuristic=None)
        before = getattr(super(), "uuid", None)
        return f"torch-diode:{own}:{digest(torch_diode.__version__, str(rest))}" + (
            f"+{before()}" if callable(before) else ""
        )

    def _finalize_template_configs(
        self,
        template_choices: dict[str, Generator[Any, None, None]],
        kernel_inputs: Any,
        templates: list[Any],
        op_name: str,
        kwarg_overrides: dict[str, dict[str, Any]] | None = None,
    ) -> list[Any]:
        """The hook from 2.10 on: all templates' choices come in, those to use go out."""
        listed = {uid: ReplayableIterator(choices) for uid, choices in template_choices.items()}
        chosen = self.decider.answer(
            ChoiceRequest(self, op_name, kernel_inputs, templates, kwarg_overrides or {}, listed)
        )
        if chosen is not None:
            return chosen
        before: Any = super()
        own = {uid: iter(choices) for uid, choices in listed.items()}
        answer: list[Any] = before._finalize_template_configs(
            own, kernel_inputs, templates, op_name, kwarg_overrides
        )
        return answer

    def get_mm_configs(
        self,
        kernel_inputs: Any,
        layout: Any,
        templates: list[Any],
        op_name: str,
        kwarg_overrides: dict[str, dict[str, Any]] | None = None,
    ) -> Generator[Any, None, None]:
        """The hook of 2.9, asked once for each template."""
        question = ChoiceRequest(
            self, op_name, kernel_inputs, templates, kwarg_overrides or {}, layout=layout
        )
        chosen = self.decider.answer(question)
        if chosen is not None:
            yield from chosen
            return
        before: Any = super()
        yield from before.get_mm_configs(kernel_inputs, layout, templates, op_name, kwarg_overrides)


def bound_to(decider: Decider) -> type[DiodeInductorChoices]:
    """The handler class with a decider of its own, so that instances need no state."""
    return type("DiodeInductorChoices", (DiodeInductorChoices,), {"decider": decider})
