"""Rankings already made: a network of many layers has few distinct matmuls."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

_KEPT = 256


class RankingCache:
    """Answers of heuristics that answer the same each time, by all they depend on; bounded."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Candidates, Ranking]] = {}
        self._lock = threading.Lock()

    def of(
        self, heuristic: Heuristic, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> Ranking | None:
        """The heuristic's ranking, made now or before; abstaining is not kept."""
        if not heuristic.steady:
            return heuristic.rank(problem, candidates, hardware)
        key = (heuristic, problem, hardware)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is candidates:
            return kept[1]
        ranking = heuristic.rank(problem, candidates, hardware)
        if ranking is not None:
            with self._lock:
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                self._kept[key] = candidates, ranking
        return ranking
