"""A model is judged by what it has not learnt."""

from dataclasses import replace

import numpy as np
import pytest

from tests.model.test_checkpoint import METADATA
from torch_diode.model.evaluation.holdout import problems_to_score, trained_part
from torch_diode.model.features.table import feature_table
from torch_diode.model.training.options import TrainingOptions
from torch_diode.model.training.split import split_table
from torch_diode.types.errors import EmptySelectionError, InvalidValueError

OPTIONS = TrainingOptions(test_share=0.2, validation_share=0.1, seed=5)


def model_of(part, **options):
    told = {"test_share": 0.2, "validation_share": 0.1, "seed": 5, "ops": part.texts("op")}
    return replace(METADATA, dataset_digest=part.digest, options={**told, **options})


def test_a_part_trained_on_is_found_in_the_whole(dataset):
    mm = dataset.filter(op="mm")
    assert trained_part(model_of(dataset), dataset) is dataset
    assert trained_part(model_of(dataset), mm, dataset) is dataset
    assert trained_part(model_of(mm), dataset) == mm
    assert trained_part(model_of(mm), dataset.filter(op="bmm")) is None
    by_what_it_covers = model_of(mm, ops=[])
    assert trained_part(replace(by_what_it_covers, covers=["mm/float16"]), dataset) == mm


@pytest.mark.parametrize("sizes", [30, 1000])
def test_the_problems_scored_are_those_that_training_kept_apart(dataset, h200, sizes):
    """Of few problems others are kept than a share of all: the split is that of the part trained
    on, whatever is asked about."""
    whole = dataset.take(dataset.problems.ids < 3 * sizes)
    mm = whole.filter(op="mm").take(whole.filter(op="mm").problems.ids < sizes)
    both = whole.merge([mm, whole.filter(op="bmm")])
    parts = split_table(feature_table(mm, h200), OPTIONS)
    kept = parts.test if len(parts.test.group) else parts.validation
    table = feature_table(both, h200)
    found = problems_to_score("auto", model_of(mm), table.arrays, table.has_choice, both)
    scored = {both.problem(int(both.problems.first[i])) for i in np.flatnonzero(found.problems)}
    assert scored == {mm.problem(int(row)) for row in kept.rows}
    assert not found.are_all
    assert found.trained_on_data


def test_other_data_is_scored_whole_unless_it_is_asked_for(dataset, table):
    model, given = model_of(dataset.filter(op="mm")), dataset.filter(op="bmm")
    arrays = table.arrays
    asked = np.arange(len(arrays)) % 2 == 0
    found = problems_to_score("auto", model, arrays, asked, given)
    assert np.array_equal(found.problems, asked)
    assert (found.trained_on_data, found.are_all) == (False, True)
    part = problems_to_score("held-out", model, arrays, asked, dataset).problems
    assert 0 < np.count_nonzero(part) < np.count_nonzero(asked)
    assert not (part & ~asked).any()


@pytest.mark.parametrize("options", [{"seed": None}, {"test_share": "0.2"}, {"test_share": 2}])
def test_a_model_that_does_not_say_how_it_split_is_scored_on_all(dataset, table, options):
    given = (model_of(dataset, **options), table.arrays, table.has_choice, dataset)
    found = problems_to_score("auto", *given)
    assert found.are_all
    assert "most of which it was trained on" in found.how
    with pytest.raises(EmptySelectionError, match="--score all"):
        problems_to_score("held-out", *given)
    with pytest.raises(InvalidValueError, match="auto, held-out, all"):
        problems_to_score("some", *given)
