"""Builds the list of choices that Inductor's hook returns from ranked candidates."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import Any

from torch_diode.integration.deciding.request import ChoiceRequest
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import ATEN, LIBRARIES
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import DiodeError

SINGLE_CHOICE = "torch_diode_single_choice"
"""Annotates a choice that replaces all others Inductor collects for the same matmul."""

BENCHMARK_SET = "torch_diode_benchmark_set"
"""Annotates a choice of a benchmark set: its list is timed by the clean benchmark."""

CPU_LIBRARIES = frozenset(LIBRARIES) - {ATEN}
"""Candidates that come in no call of Inductor's, since it does not offer them."""

MAX_ATTEMPTS = 5
"""Number of candidates to try until one can be rendered."""


class ChoiceBuilder:
    """Builds choices from candidates; those that cannot be rendered are left out.

    Choices are rendered here, where a failure falls back to torch: a single choice that fails later
    would leave Inductor with nothing to run. When observing, torch's own choices are not annotated.
    """

    def __init__(
        self,
        request: ChoiceRequest,
        offered: dict[str, Any],
        candidates: Candidates,
        *,
        observing: bool = False,
    ) -> None:
        self._request, self._offered, self._candidates = request, offered, candidates
        self._observing = observing
        self.rendering_ns = 0

    def single(self, rows: Iterable[int]) -> tuple[int, list[Any] | None]:
        """The first row that can be rendered, and the choices that make it run.

        None stands for Inductor's own list, an empty list for a call whose matmul is decided in
        another call.
        """
        request = self._request
        for row in itertools.islice(rows, MAX_ATTEMPTS):
            if self._template(row) == ATEN:
                return row, self.vendor_alone()
            choice = self._render(row)
            if choice is None:
                continue
            if ATEN in self._offered and not request.has_vendor:
                return row, []
            torch_compat.annotations_of(choice)[SINGLE_CHOICE] = True
            torch_compat.disable_prologue_fusion(choice)
            return row, [choice]
        raise DiodeError(
            f"{request.op}: got {MAX_ATTEMPTS} candidates Inductor cannot render; expected one it "
            "can; check the heuristic's templates"
        )

    def several(self, rows: list[int]) -> list[Any]:
        """The rows that belong to this call, and Inductor's choices of unranked templates."""
        request = self._request
        choices: list[Any] = []
        for row in rows:
            name = self._template(row)
            if name not in request.names and name not in CPU_LIBRARIES:
                continue
            if name == ATEN:
                choices += request.own(ATEN)
            elif (choice := self._render(row)) is not None:
                torch_compat.annotations_of(choice)[BENCHMARK_SET] = True
                choices.append(choice)
        choices += request.unranked(self._candidates.templates)
        if not choices and ATEN not in self._offered:
            raise DiodeError(f"{request.op}: none of {len(rows)} candidates could be rendered")
        return choices

    def _template(self, row: int) -> str:
        name: str = self._candidates.templates[self._candidates.template[row]]
        return name

    def vendor_alone(self) -> list[Any] | None:
        """The choices that make ATen run: None for Inductor's own list, which is ATen in plain
        mode."""
        request = self._request
        if not request.max_autotune:
            return None
        if not request.has_vendor:
            return []
        if self._observing:
            return None
        uid = f"aten::{request.op}"
        own = [c for c in request.own(ATEN) if torch_compat.template_uid(c) == uid]
        for choice in own:
            torch_compat.annotations_of(choice)[SINGLE_CHOICE] = True
        return own or None

    def _render(self, row: int) -> Any | None:
        candidate = self._candidates[row]
        choice = self._request.choice_of(candidate, self._offered[candidate.template])
        start = time.perf_counter_ns()
        possible = torch_compat.can_be_rendered(choice)
        self.rendering_ns += time.perf_counter_ns() - start
        return choice if possible else None


def keep_single_choice(choices: list[Any]) -> list[Any]:
    """The annotated single choice among all that Inductor collected for a matmul; all if none is.

    Needs the whole list: from 2.12 on addmm comes in several calls. A choice left alone is not
    benchmarked, so prologue fusion is disabled here too; max-autotune may have rendered it again.
    """
    annotations = torch_compat.annotations_of
    kept = [choice for choice in choices if annotations(choice).get(SINGLE_CHOICE)][:1] or choices
    if len(kept) == 1 and not annotations(kept[0]).keys().isdisjoint(
        (SINGLE_CHOICE, BENCHMARK_SET)
    ):
        torch_compat.disable_prologue_fusion(kept[0])
    return kept
