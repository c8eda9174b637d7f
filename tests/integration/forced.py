"""Heuristics with a fixed answer, to see whether torch does what it is told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate import ATEN, CONFIG_FIELDS, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking


class Forced(Heuristic):
    """One candidate first, all others behind it in their order; abstains where it is not there."""

    def __init__(
        self,
        config: TritonGEMMConfig | None,
        template: str = "",
        sigma: float | None = None,
        name: str = "forced",
    ) -> None:
        self.config, self.template, self.sigma, self.name = config, template, sigma, name

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        wanted = np.ones(len(candidates), bool)
        if self.config is None:
            wanted &= candidates.is_template(ATEN)
        else:
            for field in CONFIG_FIELDS:
                wanted &= candidates.fields[field] == getattr(self.config, field)
        if self.template:
            wanted &= candidates.is_template(self.template)
        if not wanted.any():
            return None
        times = np.arange(10.0, 10.0 + len(candidates))
        times[np.flatnonzero(wanted)[0]] = 1.0
        sigma = None if self.sigma is None else np.full(len(candidates), self.sigma)
        return Ranking.by_time(times, self.name, sigma)

    def fingerprint(self) -> str:
        return f"{self.name}:{self.template}:{self.config}"


class FunctionHeuristic(Heuristic):
    """Whatever a function returns or raises."""

    def __init__(
        self, answer: Callable[[Candidates], Ranking | None], fingerprint: str = "answering"
    ) -> None:
        self.answer, self.name, self._fingerprint = answer, "answering", fingerprint

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        return self.answer(candidates)

    def fingerprint(self) -> str:
        return self._fingerprint


def abstaining() -> Heuristic:
    """Never has an answer."""
    return FunctionHeuristic(lambda candidates: None, "abstaining")
