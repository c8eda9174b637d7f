"""The problems a new model is scored on, and notes on what its scores do not show."""

from __future__ import annotations

import numpy as np

from torch_diode.model.evaluation.regret import problem_slices
from torch_diode.model.features.table import FeatureTable
from torch_diode.model.metadata import CLEAN
from torch_diode.model.networks.library_model import Network
from torch_diode.model.training.options import Trained
from torch_diode.model.training.split import SplitTables
from torch_diode.types.dataset import Dataset


def scored_part(parts: SplitTables) -> tuple[FeatureTable, str]:
    """The problems to score on, and a description of them."""
    count = _count_choices(parts.test)
    if count:
        return parts.test, f"{count:,} problems held out of training"
    count = _count_choices(parts.validation)
    return parts.validation, (
        f"the {count:,} problems training stopped by: too few to hold out others, so the scores "
        "flatter it; collect a validation set"
    )


def uncovered(part: FeatureTable) -> list[str]:
    """A note on the kinds of problems that the scores say nothing about."""
    numbers = np.unique(part.with_a_choice().group)
    slices = problem_slices(part.arrays.take(numbers), part.roofline[numbers])
    kinds = ("op=", "precision=", "layout=", "size=")
    missing = [n for n, m in slices.items() if n.startswith(kinds) and "," not in n and not m.any()]
    if not missing:
        return []
    return [
        f"none of the problems scored on is {', '.join(missing)}: how good the model is there is "
        "not known; validate it on problems that are"
    ]


def _count_choices(table: FeatureTable) -> int:
    """The number of problems with more than one candidate."""
    return int(np.count_nonzero(np.bincount(table.group, minlength=1) > 1))


def regret_before(trained: Trained[Network]) -> list[str]:
    """A note on the regret of the model that a run started from."""
    first = next((row for row in trained.history if row["epoch"] == 0), None)
    if first is None:
        return []
    best = min(row["regret@1"] for row in trained.history if "regret@1" in row)
    return [
        f"on the problems training stopped by, regret@1 was {first['regret@1']:.4f} before and "
        f"is {best:.4f} now"
    ]


def launch_note(dataset: Dataset) -> list[str]:
    """The limit of a model whose timings include the launch."""
    if {*CLEAN} & {*dataset.texts("method")}:
        return []
    return [
        "the timings are autotuning's, with the launch in them: the order of Triton configs "
        "carries over, ATen's place among them on small problems may not."
    ]
