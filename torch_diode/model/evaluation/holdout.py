"""Which of a dataset's problems a model is judged by: not those it has learnt, unless that is
asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_diode.model.evaluation.regret import Mask
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.table import usable_rows
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.training.split import split_as
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError

SCORED = ("auto", "held-out", "all")
_HELD = ("held out of training", "training stopped by, too few to hold out others")


@dataclass(frozen=True, eq=False)
class HoldoutSelection:
    """The problems that scores are of."""

    problems: Mask
    trained_on_data: bool
    """Whether the model was trained on the data they are from."""
    are_all: bool
    total: int
    """How many were asked about."""
    how: str

    def describe(self, count: int) -> str:
        """In words, with so many of them left in the end."""
        which = f"all {count:,}" if count == self.total else f"{count:,} of {self.total:,}"
        return f"{which} problems{self.how}"


def problems_to_score(
    score: str, metadata: ModelMetadata, arrays: ProblemArrays, asked: Mask, *sources: Dataset
) -> HoldoutSelection:
    """Of the problems asked about those that `score` is for.

    `sources` are the dataset the problems are from and, where that is a part, the whole.
    """
    validation.one_of("score", "score", score, SCORED)
    own = trained_part(metadata, *sources)
    count = int(np.count_nonzero(asked))
    if score == "held-out" or (score == "auto" and own is not None):
        split = sources[0] if own is None else own
        for kept, how in zip(_kept(metadata, arrays, split), _HELD, strict=False):
            if (kept & asked).any():
                return HoldoutSelection(kept & asked, own is not None, False, count, f", {how}")
    if score == "held-out":
        raise EmptySelectionError(
            f"score held-out: got {count} problems, none of them held out of training as far as "
            "the model says; expected some; collect a validation set, or give --score all"
        )
    seen = "" if own is None else ", most of which it was trained on"
    return HoldoutSelection(asked, own is not None, True, count, f" of the data{seen}")


def trained_part(metadata: ModelMetadata, *sources: Dataset) -> Dataset | None:
    """The part of some data that a model was trained on: one of these as a whole, or what one has
    of the model's operations. None where it was trained on other data."""
    for source in sources:
        if source.digest == metadata.dataset_digest:
            return source
    ops = metadata.options.get("ops") or [name.partition("/")[0] for name in metadata.covers]
    for source in sources:
        own = source.filter(op=ops, hardware=metadata.hardware)
        if 0 < len(own) < len(source) and own.digest == metadata.dataset_digest:
            return own
    return None


def _kept(metadata: ModelMetadata, arrays: ProblemArrays, trained: Dataset) -> tuple[Mask, ...]:
    """Which problems were for the test and which to stop by, where the model says how the data it
    was trained on was split."""
    options = metadata.options
    shares = [options.get(name) for name in ("test_share", "validation_share")]
    seed = options.get("seed")
    known = [float(s) for s in shares if isinstance(s, int | float) and 0 <= s < 1]
    if len(known) < len(shares) or type(seed) is not int or seed < 0:
        return ()
    met = np.unique(trained.problems.ids[usable_rows(trained)])
    return split_as(arrays, ProblemArrays.of_dataset(trained).take(met), known[0], known[1], seed)
