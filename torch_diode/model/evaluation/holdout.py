"""Selection of the problems that a model is scored on: by default those it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.model.features.problem_arrays import ProblemArrays, usable_rows
from torch_diode.model.training.split import split_as
from torch_diode.types import validation
from torch_diode.types.errors import EmptySelectionError

if TYPE_CHECKING:
    from torch_diode.model.evaluation.regret import Mask
    from torch_diode.model.metadata import ModelMetadata
    from torch_diode.types.dataset import Dataset

SCORED = ("auto", "held-out", "all")
_HELD = ("held out of training", "training stopped by, too few to hold out others")


@dataclass(frozen=True, eq=False)
class HoldoutSelection:
    """Problems to score a model on."""

    problems: Mask
    trained_on_data: bool
    """True if the model was trained on the data they are from."""
    are_all: bool
    total: int
    """Number of problems to select from."""
    how: str

    def describe(self, count: int) -> str:
        """Describe the selection, of which `count` problems were scored in the end."""
        which = f"all {count:,}" if count == self.total else f"{count:,} of {self.total:,}"
        return f"{which} problems{self.how}"


def problems_to_score(
    score: str, metadata: ModelMetadata, arrays: ProblemArrays, candidates: Mask, *sources: Dataset
) -> HoldoutSelection:
    """Select the problems that `score` names among the candidates.

    `sources` are the dataset of the problems and, if that is a part, the whole.
    """
    validation.one_of("score", "score", score, SCORED)
    own = trained_part(metadata, *sources)
    count = int(np.count_nonzero(candidates))
    if score == "held-out" or (score == "auto" and own is not None):
        split = sources[0] if own is None else own
        for part, how in zip(_held_out(metadata, arrays, split), _HELD, strict=False):
            chosen = part & candidates
            if chosen.any():
                return HoldoutSelection(chosen, own is not None, False, count, f", {how}")
    if score == "held-out":
        raise EmptySelectionError(
            f"score held-out: got {count} problems, none of them held out of training as far as "
            "the model says; expected some; collect a validation set, or give --score all"
        )
    seen = "" if own is None else ", most of which it was trained on"
    return HoldoutSelection(candidates, own is not None, True, count, f" of the data{seen}")


def trained_part(metadata: ModelMetadata, *sources: Dataset) -> Dataset | None:
    """Find the data a model was trained on: one of the sources, or its timings of the model's
    operations; None if it was trained on other data."""
    for source in sources:
        if source.digest == metadata.dataset_digest:
            return source
    ops = metadata.options.get("ops") or [name.partition("/")[0] for name in metadata.covers]
    for source in sources:
        own = source.filter(op=ops, hardware=metadata.hardware)
        if 0 < len(own) < len(source) and own.digest == metadata.dataset_digest:
            return own
    return None


def _held_out(metadata: ModelMetadata, arrays: ProblemArrays, trained: Dataset) -> tuple[Mask, ...]:
    """Test and validation problems of the model's training, if its metadata give the split."""
    options = metadata.options
    shares = [options.get(name) for name in ("test_share", "validation_share")]
    seed = options.get("seed")
    known = [float(s) for s in shares if isinstance(s, int | float) and 0 <= s < 1]
    if len(known) < len(shares) or type(seed) is not int or seed < 0:
        return ()
    usable = np.unique(trained.problems.ids[usable_rows(trained)])
    whole = ProblemArrays.of_dataset(trained).take(usable)
    return split_as(arrays, whole, known[0], known[1], seed)
