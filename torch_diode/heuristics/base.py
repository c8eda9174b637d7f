"""The protocol of heuristics."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod

from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking


class Heuristic(ABC):
    """Orders the candidates of a problem, best first, or abstains.

    The same inputs must give the same answer in every process: distributed ranks that choose
    differently compile different programs. `torch_diode.heuristics.testing` checks conformance.
    """

    name: str
    """Short and readable: it becomes `Ranking.source`, which `explain` shows. Defaults to the
    class's name."""

    steady: bool = False
    """True if answers depend on the arguments of `rank` alone, so that they may be cached."""

    portable: bool = True
    """False where the fingerprint is of this process alone, and says nothing to another."""

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    @abstractmethod
    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """The candidates in order, or None to abstain; raises `DiodeError` on bad input."""

    def why_shortlists(self, hardware: Hardware) -> str:
        """The reason why its choices may only be benchmarked on this hardware (max-autotune does),
        and none may run unbenchmarked; empty where it decides alone."""
        return ""

    @abstractmethod
    def fingerprint(self) -> str:
        """Text for torch's cache keys: changes whenever answers may change, and is otherwise the
        same in every process."""

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """The reason why `rank` gives None, for `status` and `explain`; empty where it answers.
        Not called during a decision, so it may be slow."""
        if self.rank(problem, candidates, hardware) is not None:
            return ""
        return f"{self.name} abstained on {problem} for {hardware.name}"

    def notes(self) -> list[str]:
        """What a user should know about its answers so far, for `status` and `explain`."""
        return []


def digest(*parts: str) -> str:
    """A short, stable hash of texts, for fingerprints; `("ab",)` and `("a", "b")` differ."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
