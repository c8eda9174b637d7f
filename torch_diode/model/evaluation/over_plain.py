"""Decisions over plain torch's: the time of the choice, over that of what plain torch runs.

Regret compares with the best there is; users compare with what they had before. A decision that is
slower than plain torch's, by more than the noise of both times, breaks a promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from torch_diode.model.evaluation.regret import ONCE

if TYPE_CHECKING:
    from torch_diode.model.evaluation.regret import Ids, Mask
    from torch_diode.model.features.table import FeatureTable

SLOWER = 1.05
"""Ratio above which a decision counts as slower."""
_CERTAIN = 2.0
"""Standard errors of the ratio within which it may be noise."""


@dataclass(frozen=True)
class OverPlain:
    """Decisions over plain torch's in a slice of the problems."""

    problems: int
    geomean: float
    p99: float
    worst: float
    slower: int
    """Decisions above `SLOWER` beyond noise."""
    unsure: int
    """Decisions whose time was measured too few times to say."""
    best: float
    """Geometric mean with perfect knowledge of the times."""
    changed: float
    """Share of decisions that are not plain torch's."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        return {name: _rounded(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class Decided:
    """Rows of a table: of each decision, of plain torch's choice and of the best on offer."""

    chosen: Ids
    plain: Ids
    best: Ids

    def __len__(self) -> int:
        return len(self.chosen)


def over_plain(
    table: FeatureTable, decided: Decided, slices: Mapping[str, Mask]
) -> dict[str, OverPlain]:
    """Summarise the decisions by slice, of those that have any; `all` comes first."""
    ratio = table.time_us[decided.chosen] / table.time_us[decided.plain]
    best = table.time_us[decided.best] / table.time_us[decided.plain]
    changed = decided.chosen != decided.plain
    noise = np.hypot(table.noise[decided.chosen], table.noise[decided.plain])
    unsure = noise >= ONCE
    slower = (ratio > SLOWER) & (np.log(ratio) > _CERTAIN * noise) & ~unsure
    everything = {"all": np.ones(len(decided), bool), **slices}
    return {
        name: _summary(ratio[mask], best[mask], slower[mask], unsure[mask], changed[mask])
        for name, mask in everything.items()
        if mask.any()
    }


def _summary(
    ratio: npt.NDArray[np.floating],
    best: npt.NDArray[np.floating],
    slower: Mask,
    unsure: Mask,
    changed: Mask,
) -> OverPlain:
    return OverPlain(
        len(ratio),
        float(np.exp(np.log(ratio).mean())),
        float(np.percentile(ratio, 99)),
        float(ratio.max()),
        int(np.count_nonzero(slower)),
        int(np.count_nonzero(unsure)),
        float(np.exp(np.log(best).mean())),
        float(changed.mean()),
    )


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else round(value, 5)
