"""Ranked candidates, worded as the list of choices Inductor's hook returns."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import Any

from torch_diode.integration.deciding.request import ChoiceRequest
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import DiodeError

SINGLE_CHOICE = "torch_diode_single_choice"
"""Marks a choice that is to stand alone, whatever else Inductor collects for the same matmul."""

BENCHMARK_SET = "torch_diode_benchmark_set"
"""Marks a choice that a heuristic named to be benchmarked: its list is timed cleanly."""

TRIES = 5
"""How far down the order to look for a candidate that can be rendered."""


class ChoiceBuilder:
    """Makes choices of candidates; what cannot be rendered is left out.

    A choice is rendered here, inside the guard, since a single one that turns out to be none
    would leave Inductor with nothing to run. Where torch-diode only observes, torch's own choices
    are not marked: they stay torch's.
    """

    def __init__(
        self,
        question: ChoiceRequest,
        offered: dict[str, Any],
        candidates: Candidates,
        *,
        observing: bool = False,
    ) -> None:
        self._question, self._offered, self._candidates = question, offered, candidates
        self._observing = observing
        self.rendering_ns = 0

    def single(self, rows: Iterable[int]) -> tuple[int, list[Any] | None]:
        """The first of these that can be rendered, and the choices that make it run.

        None stands for Inductor's own list, and an empty list for a call whose matmul is
        answered by another call.
        """
        question = self._question
        for row in itertools.islice(rows, TRIES):
            name = self._candidates.templates[self._candidates.template[row]]
            if name == ATEN:
                return row, self._vendor_alone()
            choice = self._render(row)
            if choice is None:
                continue
            if ATEN in self._offered and not question.has_vendor:
                return row, []
            torch_compat.annotations_of(choice)[SINGLE_CHOICE] = True
            torch_compat.disable_prologue_fusion(choice)
            return row, [choice]
        raise DiodeError(
            f"{question.op}: got {TRIES} candidates Inductor cannot render; expected one it can; "
            "check the heuristic's templates"
        )

    def several(self, rows: list[int]) -> list[Any]:
        """All of these that belong to this call, and what Inductor lists that nobody ranks."""
        question = self._question
        choices: list[Any] = []
        for row in rows:
            name = self._candidates.templates[self._candidates.template[row]]
            if name not in question.names:
                continue
            if name == ATEN:
                choices += question.own(ATEN)
            elif (choice := self._render(row)) is not None:
                torch_compat.annotations_of(choice)[BENCHMARK_SET] = True
                choices.append(choice)
        choices += question.unranked(self._candidates.templates)
        if not choices and ATEN not in self._offered:
            raise DiodeError(f"{question.op}: none of {len(rows)} candidates could be rendered")
        return choices

    def _vendor_alone(self) -> list[Any] | None:
        question = self._question
        if not question.max_autotune:
            return None
        if not question.has_vendor:
            return []
        if self._observing:
            return None
        plain = f"aten::{question.op}"
        own = [choice for choice in question.own(ATEN) if choice.template.uid == plain]
        for choice in own:
            torch_compat.annotations_of(choice)[SINGLE_CHOICE] = True
        return own or None

    def _render(self, row: int) -> Any | None:
        candidate = self._candidates[row]
        choice = self._question.choice_of(candidate, self._offered[candidate.template])
        start = time.perf_counter_ns()
        possible = torch_compat.can_be_rendered(choice)
        self.rendering_ns += time.perf_counter_ns() - start
        return choice if possible else None


def keep_single_choice(choices: list[Any]) -> list[Any]:
    """Of all that Inductor collected for a matmul, the one marked to stand alone, if any is.

    addmm is asked for in several calls from 2.12 on: only the whole list shows the others. One
    choice is run without being benchmarked, so it is told here to leave its operands alone, too:
    with max-autotune, Inductor may have rendered it again since.
    """
    kept = [choice for choice in choices if torch_compat.annotations_of(choice).get(SINGLE_CHOICE)][:1] or choices
    if len(kept) == 1 and not torch_compat.annotations_of(kept[0]).keys().isdisjoint((SINGLE_CHOICE, BENCHMARK_SET)):
        torch_compat.disable_prologue_fusion(kept[0])
    return kept
