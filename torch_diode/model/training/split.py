"""Splitting by problem, never by row.

Rows of one problem share nearly everything, so a split by row would test on what was learnt. The
hash takes op and sizes only: a problem that comes in several dtypes or layouts falls on one side
with all of them, because their times follow from each other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.types.validation import fraction

_SPAN = np.uint64(1 << 32)
FEW = 40
"""With fewer sizes than this, a share of them may well be none: see `split`."""
_FEW_SHARE = 0.2


def held_out(
    problems: ProblemArrays, share: float, seed: int = 0, skip: float = 0.0
) -> npt.NDArray[np.bool_]:
    """Which problems to keep from training: about `share` of them, the same for the same seed.

    `skip` leaves out that share first, so that several sets of one seed never meet: validation is
    `held_out(p, 0.1, seed, skip=0.15)` beside a test of `held_out(p, 0.15, seed)`.
    """
    fraction("split", "share", share, expected="0 to 1")
    place = _places(problems, seed)
    return np.asarray((place >= skip) & (place < skip + share))


def split(
    problems: ProblemArrays, test_share: float, validation_share: float, seed: int = 0
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which problems are for the test and which to stop by; the rest is to train on."""
    place = _places(problems, seed)
    sizes = np.unique(place)
    if len(sizes) < FEW:
        return _split_few(place, sizes)
    parts = (
        held_out(problems, test_share, seed),
        held_out(problems, validation_share, seed, test_share),
    )
    if parts[0].any() >= (test_share > 0) and parts[1].any() and not (parts[0] | parts[1]).all():
        return parts
    # Shares too small for a draw to hit, or a choice that follows the hash, such as another run's
    # test part.
    test, check = (max(round(s * len(sizes)), int(s > 0)) for s in (test_share, validation_share))
    rank = np.searchsorted(sizes, place)
    return rank < test, (rank >= test) & (rank < test + check)


def split_as(
    problems: ProblemArrays,
    whole: ProblemArrays,
    test_share: float,
    validation_share: float,
    seed: int = 0,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """On which side of a `split` of the whole some problems fall, which need not be all of it."""
    here, there = _places(problems, seed), _places(whole, seed)
    test, stop = (
        np.isin(here, there[part]) for part in split(whole, test_share, validation_share, seed)
    )
    return test, stop


def _split_few(
    place: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """A fifth of the sizes to stop by, at least one and never all, and no test: a handful of
    problems would only say how lucky the draw was."""
    count = min(max(round(_FEW_SHARE * len(sizes)), 1), len(sizes) - 1)
    return np.zeros(len(place), bool), np.isin(place, sizes[:count])


def _places(problems: ProblemArrays, seed: int) -> npt.NDArray[np.float64]:
    """A number from 0 to 1 for each problem, from op and sizes alone (splitmix64)."""
    words = np.full(len(problems), seed, np.uint64)
    for values in (problems.op, problems.B, problems.M, problems.N, problems.K):
        words = words * np.uint64(0x9E3779B97F4A7C15) ^ values.astype(np.uint64)
        words ^= words >> np.uint64(30)
        words *= np.uint64(0xBF58476D1CE4E5B9)
        words ^= words >> np.uint64(27)
        words *= np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
    return np.asarray((words % _SPAN) / float(_SPAN))
