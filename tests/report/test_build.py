from __future__ import annotations

from copy import copy
from dataclasses import replace

import pytest

from torch_diode.hardware import known
from torch_diode.model.training.split import held_out
from torch_diode.report.build import report_data
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError, InvalidValueError

NAMES = ("data", "model")


def with_metadata(model, **changes):
    changed = copy(model.wrapper)
    changed.metadata = replace(model.wrapper.metadata, **changes)
    return replace(model, wrapper=changed)


@pytest.fixture(scope="module")
def some(dataset):
    return dataset.take(dataset.problems.ids < 60)


def test_other_data_than_the_training_set_is_scored_whole(some, model, hardware):
    data = report_data(some, model, hardware, NAMES)
    assert data["about"]["scored"] == data["about"]["problems"] == 60
    assert data["about"]["scored_how"].startswith("Scores are of all 60 problems of the data.")
    assert all(data["lookup"]["scored"])


def test_a_model_is_not_judged_by_what_it_was_trained_on(some, model, hardware, timings):
    options = {"test_share": 0.2, "validation_share": 0.1, "seed": 3}
    trained = with_metadata(model, dataset_digest=some.digest, options=options)
    data = report_data(some, trained, hardware, NAMES)
    kept = held_out(timings.arrays, options["test_share"], options["seed"])[:60].sum()
    assert 0 < data["about"]["scored"] == kept < 60
    assert (
        data["about"]["scored_how"] == f"Scores are of {kept} of 60 problems, held out of training."
    )
    assert sum(data["lookup"]["scored"]) == kept
    assert len(data["lookup"]["kind"]) == 60


def test_one_that_does_not_say_what_was_kept_is_flattered_and_the_page_says_so(
    some, model, hardware
):
    silent = with_metadata(model, dataset_digest=some.digest, options={})
    data = report_data(some, silent, hardware, NAMES)
    assert data["about"]["scored"] == 60
    told = "all 60 problems of the data, most of which it was trained on: they flatter it."
    assert data["about"]["scored_how"] == f"Scores are of {told}"
    with pytest.raises(EmptySelectionError, match="none of them held out of training as far as"):
        report_data(some, silent, hardware, NAMES, score="held-out")


def test_with_few_problems_none_was_held_out_but_some_were_stopped_by(dataset, model, hardware):
    few = dataset.take(dataset.problems.ids < 12)
    trained = with_metadata(model, dataset_digest=few.digest)
    about = report_data(few, trained, hardware, NAMES)["about"]
    assert 0 < about["scored"] < 5
    assert "training stopped by, too few to hold out others" in about["scored_how"]


def test_held_out_and_all_can_be_asked_for(some, model, hardware):
    part = report_data(some, model, hardware, NAMES, score="held-out")["about"]["scored"]
    trained = with_metadata(model, dataset_digest=some.digest)
    whole = report_data(some, trained, hardware, NAMES, score="all")["about"]
    assert 0 < part < whole["scored"] == 60
    assert "flatter" in whole["scored_how"]


def test_what_cannot_be_scored_is_one_sentence(some, model, hardware):
    with pytest.raises(InvalidValueError, match="score"):
        report_data(some, model, hardware, NAMES, score="some")
    with pytest.raises(HardwareMismatchError, match="got one of nvidia-h200"):
        report_data(some, model, known("nvidia-a100"), NAMES)
    nothing = with_metadata(model, covers=["mm/float64"])
    nothing.wrapper._covers = frozenset()
    with pytest.raises(EmptySelectionError, match="got no problem to score of 60; the model was"):
        report_data(some, nothing, hardware, NAMES)
