"""The protocol every heuristic follows, and nothing else."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod

from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking


class Heuristic(ABC):
    """Something that orders the candidates of a problem, best first, or abstains.

    The same inputs must give the same answer in every process: ranks that choose differently
    compile different programs. `torch_diode.heuristics.testing` checks that, and the rest.
    """

    name: str
    """Short and readable; it becomes `Ranking.source`, and so what `explain` shows. The class's
    name where there is no other."""

    steady: bool = False
    """Whether its answers depend on nothing but the question for as long as it lives: they may
    then be remembered, and `rank` is asked once for each question."""

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    @abstractmethod
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """The candidates in order, or None to abstain. Raises `DiodeError` rather than guess."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Text that changes whenever the answers may change, and is the same in every process
        otherwise: it goes into torch's cache keys."""

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """One sentence for `status` and `explain` on why `rank` gives None for these; empty where
        it does answer. Never called on the way to a decision, so it may take its time."""
        if self.rank(problem, candidates, hardware) is not None:
            return ""
        return f"{self.name} abstained on {problem} for {hardware.name}"


def digest(*parts: str) -> str:
    """A short, stable hash of some texts, for fingerprints; `("ab",)` and `("a", "b")` differ."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
