"""Heuristics with a fixed result, to see whether torch follows it."""

from collections.abc import Callable

import numpy as np

from torch_diode import Candidates, Hardware, Heuristic, MMShape, Ranking, TritonGEMMConfig
from torch_diode.types.candidate import ATEN, CONFIG_FIELDS


class Forced(Heuristic):
    """One candidate first, ATen for a config of None, and all others in their order; abstains
    where it is not on offer."""

    def __init__(
        self,
        config: TritonGEMMConfig | None,
        template: str = "",
        sigma: float | None = None,
        name: str = "forced",
    ) -> None:
        self.config, self.template, self.sigma, self.name = config, template, sigma, name

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        first = np.ones(len(candidates), bool)
        if self.config is None:
            first &= candidates.is_template(ATEN)
        else:
            for field in CONFIG_FIELDS:
                first &= candidates.fields[field] == getattr(self.config, field)
        if self.template:
            first &= candidates.is_template(self.template)
        if not first.any():
            return None
        times = np.arange(10.0, 10.0 + len(candidates))
        times[np.flatnonzero(first)[0]] = 1.0
        sigma = None if self.sigma is None else np.full(len(candidates), self.sigma)
        return Ranking.by_time(times, self.name, sigma)

    def fingerprint(self) -> str:
        return f"{self.name}:{self.template}:{self.config}"


class FunctionHeuristic(Heuristic):
    """Whatever a function of the candidates returns or raises."""

    name = "function"

    def __init__(
        self, function: Callable[[Candidates], Ranking | None], fingerprint: str = "function"
    ) -> None:
        self.function, self._fingerprint = function, fingerprint

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        return self.function(candidates)

    def fingerprint(self) -> str:
        return self._fingerprint


def abstaining() -> Heuristic:
    return FunctionHeuristic(lambda candidates: None, "abstaining")
