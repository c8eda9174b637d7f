"""Splitting of problems into training, validation and test parts.

Rows of one problem share nearly everything, so a split by row would test on training data. The hash
takes op and sizes only: a problem in several dtypes or layouts falls on one side with all of them,
because their times follow from each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.validation import fraction

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import ProblemArrays
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.training.options import TrainingOptions

Mask = npt.NDArray[np.bool_]

_SPAN = np.uint64(1 << 32)
FEW = 40
"""With fewer sizes than this, a random share of them may be empty: see `split`."""
_FEW_SHARE = 0.2


def held_out(problems: ProblemArrays, share: float, seed: int = 0, skip: float = 0.0) -> Mask:
    """Select about `share` of the problems, the same for the same seed.

    `skip` leaves out that share first, so that several sets of one seed are disjoint: validation is
    `held_out(p, 0.1, seed, skip=0.15)` beside a test of `held_out(p, 0.15, seed)`.
    """
    fraction("split", "share", share, expected="0 to 1")
    place = _places(problems, seed)
    return np.asarray((place >= skip) & (place < skip + share))


def split(
    problems: ProblemArrays, test_share: float, validation_share: float, seed: int = 0
) -> tuple[Mask, Mask]:
    """Select the problems to test on and those to validate on; the rest is to train on."""
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
    # Shares too small for a draw, or problems selected by the same hash, such as another run's test
    # part.
    test, check = (max(round(s * len(sizes)), int(s > 0)) for s in (test_share, validation_share))
    rank = np.searchsorted(sizes, place)
    return rank < test, (rank >= test) & (rank < test + check)


def split_as(
    problems: ProblemArrays,
    whole: ProblemArrays,
    test_share: float,
    validation_share: float,
    seed: int = 0,
) -> tuple[Mask, Mask]:
    """Select the problems that fall into the test and validation parts of a `split` of `whole`."""
    here, there = _places(problems, seed), _places(whole, seed)
    test, stop = (
        np.isin(here, there[part]) for part in split(whole, test_share, validation_share, seed)
    )
    return test, stop


def _split_few(place: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64]) -> tuple[Mask, Mask]:
    """Select a fifth of the sizes for validation, at least one and never all, and no test part: a
    score of a handful of problems would mean nothing."""
    count = min(max(round(_FEW_SHARE * len(sizes)), 1), len(sizes) - 1)
    return np.zeros(len(place), bool), np.isin(place, sizes[:count])


def _places(problems: ProblemArrays, seed: int) -> npt.NDArray[np.float64]:
    """Hash op and sizes of each problem to a number from 0 to 1 (splitmix64)."""
    words = np.full(len(problems), seed, np.uint64)
    for values in (problems.op, problems.B, problems.M, problems.N, problems.K):
        words = words * np.uint64(0x9E3779B97F4A7C15) ^ values.astype(np.uint64)
        words ^= words >> np.uint64(30)
        words *= np.uint64(0xBF58476D1CE4E5B9)
        words ^= words >> np.uint64(27)
        words *= np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
    return np.asarray((words % _SPAN) / float(_SPAN))


@dataclass(frozen=True, eq=False)
class SplitTables:
    """Parts of a table that share no problem."""

    train: FeatureTable
    validation: FeatureTable
    test: FeatureTable


def split_table(table: FeatureTable, options: TrainingOptions) -> SplitTables:
    """Split a table into the parts to train on, to stop by, and to test on; the last has only
    problems with a choice, since it scores rankings."""
    if not table.is_config.any():
        raise EmptySelectionError(
            "training: got timings of ATen alone; expected other candidates among them, such as "
            "Triton configs; collect on a GPU, or use the timings that come with torch-diode"
        )
    present = np.zeros(len(table.problem), bool)
    present[table.group] = True
    test, validation = np.zeros_like(present), np.zeros_like(present)
    test[present], validation[present] = split(
        table.arrays.take(present), options.test_share, options.validation_share, options.seed
    )
    parts = SplitTables(
        table.take(~(test | validation)), table.take(validation), table.take(test).with_a_choice()
    )
    if not parts.train.is_config.any() or not parts.validation.is_config.any():
        raise EmptySelectionError(
            f"training: got {np.count_nonzero(present)} problems; expected enough for a training "
            "and a validation part; collect more, or change the shares"
        )
    return parts
