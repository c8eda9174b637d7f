"""A report from a dataset and a model."""

from __future__ import annotations

from typing import Any

from torch_diode.model.evaluation.holdout import SCORED, HoldoutSelection, problems_to_score
from torch_diode.report.contents import Sources, contents
from torch_diode.report.predictions import LoadedModel, timings_of
from torch_diode.report.regret import InList, regrets_of
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware


def report_data(
    dataset: Dataset,
    model: LoadedModel,
    hardware: Hardware,
    names: tuple[str, str],
    score: str = "auto",
    in_list: InList | None = None,
) -> dict[str, Any]:
    """What a page shows of a dataset and a model; `names` are theirs, dataset first."""
    validation.one_of("report", "score", score, SCORED)
    model.wrapper.require(hardware)
    timings = timings_of(dataset, hardware, model)
    if not timings.supported.any():
        reason = next(iter(timings.reasons))
        raise EmptySelectionError(f"report: got no problem to score of {len(timings)}; {reason}")
    metadata = model.wrapper.metadata
    to_score = problems_to_score(score, metadata, timings.arrays, timings.supported, dataset)
    sources = Sources(names[0], dataset, names[1], metadata, _told(to_score))
    regrets = regrets_of(timings, to_score.problems, hardware, in_list)
    return contents(sources, timings, to_score.problems, regrets)


def _told(to_score: HoldoutSelection) -> str:
    """What the page says of the problems that scores are of."""
    told = f"Scores are of {to_score.told(int(to_score.problems.sum()))}"
    if to_score.trained_on_data:
        return told + (": they flatter it." if to_score.are_all else ".")
    return (
        f"{told}. The data is not the model's training set as a whole; whether single problems "
        "were in it cannot be told."
    )
