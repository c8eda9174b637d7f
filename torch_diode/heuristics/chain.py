"""Several heuristics as one: the first that answers wins."""

from __future__ import annotations

from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking


class Chain(Heuristic):
    """Tries heuristics in turn; `Ranking.source` names the one that answered.

    An error does not lead to the next heuristic: it must be seen, and the compile falls back to
    torch's own choice.
    """

    def __init__(self, *heuristics: Heuristic) -> None:
        for heuristic in heuristics:
            if not isinstance(heuristic, Heuristic):
                raise InvalidValueError(
                    f"Chain: got {type(heuristic).__name__}; expected heuristics; wrap a function "
                    "in CustomHeuristic, a table in LookupTable, a model in ModelHeuristic"
                )
        self.heuristics = heuristics
        self.steady = all(heuristic.steady for heuristic in heuristics)
        self.portable = all(heuristic.portable for heuristic in heuristics)
        self.name = "chain(" + ", ".join(heuristic.name for heuristic in heuristics) + ")"

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """The first answer; None where all abstain."""
        for heuristic in self.heuristics:
            ranking = heuristic.rank(problem, candidates, hardware)
            if ranking is not None:
                return ranking
        return None

    def why_shortlists(self, hardware: Hardware) -> str:
        """Every member's reason, in order."""
        reasons = (heuristic.why_shortlists(hardware) for heuristic in self.heuristics)
        return "; ".join(reason for reason in reasons if reason)

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """Every member's reason, in order; empty as soon as one answers."""
        reasons = []
        for heuristic in self.heuristics:
            reason = heuristic.why_abstained(problem, candidates, hardware)
            if not reason:
                return ""
            reasons.append(reason)
        return "; ".join(reasons) or "the chain is empty"

    def notes(self) -> list[str]:
        """The members' notes in order."""
        return [note for heuristic in self.heuristics for note in heuristic.notes()]

    def fingerprint(self) -> str:
        """The members' fingerprints in order."""
        return digest("chain", *(heuristic.fingerprint() for heuristic in self.heuristics))
