"""From predicted times to an order that does not depend on how the candidates came in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_diode.types.candidates import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.ranking import Ranking

# How many bits a field's greatest value takes; each of the two packs fits an integer.
_PACKS = (
    {"block_m": 13, "block_n": 13, "block_k": 13, "group_m": 11, "num_stages": 6},
    {"split_k": 17, "num_warps": 7, "waves_per_eu": 5, "matrix_instr_nonkdim": 7, "kpack": 4},
)


def rank_by_time(
    predicted_us: npt.NDArray[np.floating],
    candidates: Candidates,
    source: str,
    sigma: npt.NDArray[np.floating] | None = None,
) -> Ranking:
    """All candidates by predicted time; equal times by template and config.

    Times are often equal: configs that differ in a field the predictor does not look at, or that
    fall into one leaf of a tree. Torch lists candidates in another order from release to release,
    and the choice must not follow it.
    """
    times = np.asarray(predicted_us, dtype=np.float64)
    spread = None if sigma is None else np.asarray(sigma, dtype=np.float64)
    if np.isnan(times).any():
        raise InvalidValueError(f"{source}: got a predicted time that is not a number")
    order = np.argsort(times, kind="stable")
    same = np.diff(times[order]) == 0
    if same.any():
        tied = np.zeros(len(order), bool)
        tied[1:] |= same
        tied[:-1] |= same
        order[tied] = _by_config(order[tied], candidates, times)
    return Ranking(order, times, source, spread)


def _by_config(
    rows: npt.NDArray[np.int64], candidates: Candidates, times: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    names = sorted(candidates.templates)
    places = np.array([names.index(name) for name in candidates.templates], dtype=np.int64)
    template = places[candidates.template[rows]]
    first, second = (_packed(pack, rows, candidates) for pack in _PACKS)
    return rows[np.lexsort((second, first, template, times[rows]))]


def _packed(
    pack: dict[str, int], rows: npt.NDArray[np.int64], candidates: Candidates
) -> npt.NDArray[np.int64]:
    """Fields in one integer, which is far quicker to sort by than as many arrays."""
    key = np.zeros(len(rows), np.int64)
    for name, bits in pack.items():
        key <<= bits
        key |= candidates.fields[name][rows]
    return key
