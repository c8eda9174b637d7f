"""The table that `torch-diode tune` keeps: all candidates of a program's problems, timed here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from torch_diode.heuristics.base import digest
from torch_diode.heuristics.table import LookupTable
from torch_diode.types.candidate import PACKED
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.table import Table

ERROR = 0.025
"""Assumed error of a measured time: with it, the policy replaces torch's own choice only by a
candidate that was about 2% faster."""


class TunedTable(LookupTable):
    """A table whose times were measured, so that the policy can tell a gain from noise.

    It abstains where a library that packs constant weights is on offer and was not measured: the
    problem was met in graphs without constant weights only, and torch may run that library.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table, name="tuned table")

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """The row's candidates that are offered, by time."""
        ranking = super().rank(problem, candidates, hardware)
        if ranking is None or not _has_all_packed(ranking, candidates):
            return None
        error = np.full(len(candidates), ERROR)
        return replace(ranking, sigma=error, open_sizes=hardware.kind != "cpu")

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """As of a table, or that packed weights were not measured."""
        own = super().rank(problem, candidates, hardware)
        if own is not None and not _has_all_packed(own, candidates):
            return f"{self.name} has {problem} without packed weights"
        return super().why_abstained(problem, candidates, hardware)

    def notes(self) -> list[str]:
        """None: rows that no problem met are those of other programs."""
        return []

    def fingerprint(self) -> str:
        """Another than of a table followed to the letter, which ignores the error."""
        return digest("tuned", str(ERROR), super().fingerprint())


def _has_all_packed(ranking: Ranking, candidates: Candidates) -> bool:
    ranked = np.zeros(len(candidates), bool)
    ranked[ranking.order] = True
    return all(bool(ranked[candidates.is_template(name)].all()) for name in PACKED)
