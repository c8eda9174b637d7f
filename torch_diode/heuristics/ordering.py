"""From predicted times to an order that does not depend on how the candidates came in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_diode.heuristics.candidate_key import packed
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.ranking import Ranking


def rank_by_time(
    predicted_us: npt.NDArray[np.floating],
    candidates: Candidates,
    source: str,
    sigma: npt.NDArray[np.floating] | None = None,
    note: str = "",
    open_sizes: bool = False,
) -> Ranking:
    """All candidates by predicted time; equal times by template and config.

    Times are often equal: configs that differ in a field the predictor does not look at, or that
    fall into one leaf of a tree. Torch lists candidates in another order from release to release,
    and the choice must not follow it.
    """
    times = np.asarray(predicted_us, dtype=np.float64)
    spread = None if sigma is None else np.asarray(sigma, dtype=np.float64)
    # Not the stable sort, which is slower: what ties is put in order below.
    order = np.argsort(times)
    ordered = times[order]
    # What is not a number comes last, and is no number's equal, not even its own.
    if len(ordered) and ordered[-1] != ordered[-1]:
        raise InvalidValueError(f"{source}: got a predicted time that is not a number")
    same = ordered[1:] == ordered[:-1]
    if np.count_nonzero(same):
        tied = np.zeros(len(order), bool)
        tied[1:] |= same
        tied[:-1] |= same
        order[tied] = _by_config(np.sort(order[tied]), candidates, times)
    return Ranking(order, times, source, spread, note, open_sizes)


def _by_config(
    rows: npt.NDArray[np.int64], candidates: Candidates, times: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    names = sorted(candidates.templates)
    places = np.array([names.index(name) for name in candidates.templates], dtype=np.int64)
    template = places[candidates.template[rows]]
    keys = packed(candidates)
    first, second = keys.first[rows], keys.second[rows]
    return rows[np.lexsort((second, first, template, times[rows]))]
