"""A report from a dataset and a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_diode.model.split import split
from torch_diode.model.wrapper import ModelWrapper
from torch_diode.report.contents import Sources, contents
from torch_diode.report.predictions import Flags, LoadedModel, Timings, timings_of
from torch_diode.report.regret import InList, regrets_of
from torch_diode.types import checks
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware

SCORED = ("auto", "held-out", "all")


def report_data(
    dataset: Dataset,
    model: LoadedModel,
    hardware: Hardware,
    names: tuple[str, str],
    score: str = "auto",
    in_list: InList | None = None,
) -> dict[str, Any]:
    """What a page shows of a dataset and a model; `names` are theirs, dataset first."""
    checks.one_of("report", "score", score, SCORED)
    model.wrapper.require(hardware)
    timings = timings_of(dataset, hardware, model)
    chosen, how = _scored(timings, dataset, model.wrapper, score)
    sources = Sources(names[0], dataset, names[1], model.wrapper.metadata, how)
    regrets = regrets_of(timings, chosen, hardware, in_list)
    return contents(sources, timings, chosen, regrets)


def _scored(
    timings: Timings, dataset: Dataset, model: ModelWrapper, score: str
) -> tuple[Flags, str]:
    """The problems that scores are of, and the sentence that says so. A model is not judged by
    what it has learnt, unless that is asked for."""
    trained_on_it = model.metadata.dataset_digest == dataset.digest
    kept, how = _kept(timings, model)
    if score == "held-out" and not kept.any():
        raise EmptySelectionError(
            "score held-out: got no problem that the model says was kept from its training; "
            "expected some; use --score all"
        )
    if score == "held-out" or (score == "auto" and trained_on_it and kept.any()):
        chosen = kept & timings.supported
        how += " (the model was trained on the rest of this data)." if trained_on_it else "."
    else:
        chosen = timings.supported
        how = (
            "The model was trained on this data: scores flatter it."
            if trained_on_it
            else "Scores are of all problems. The data is not the model's training set as a whole; "
            "whether single problems were in it cannot be told."
        )
    if not chosen.any():
        raise EmptySelectionError(
            f"report: got no problem to score of {len(timings)}; "
            + next(iter(timings.reasons), "none was kept from training; use --score all")
        )
    return np.asarray(chosen), how


def _kept(timings: Timings, model: ModelWrapper) -> tuple[Flags, str]:
    """The problems kept from training by what the model says of its split, and how to say it."""
    options = model.metadata.options
    shares = [options.get(name) for name in ("test_share", "validation_share")]
    seed = options.get("seed")
    known = [float(s) for s in shares if isinstance(s, int | float) and 0 <= s < 1]
    if len(known) < len(shares) or type(seed) is not int or seed < 0:
        return np.zeros(len(timings), bool), ""
    test, stop = split(timings.arrays, known[0], known[1], seed)
    if test.any():
        return test, f"Scores are of the {known[0]:.0%} of problems that were kept from training"
    return stop, "Scores are of the few problems that training was stopped by"
