"""A training ends when its time is spent, with a model that can be used."""

from dataclasses import replace

import pytest

from tests.model.training.test_trainer import SMALL
from torch_diode.model.evaluation.scoring import predict_times
from torch_diode.model.training.split import split_table
from torch_diode.model.training.time_limit import TimeLimit
from torch_diode.model.training.trainer import train
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.types.errors import InvalidValueError

SPENT = TimeLimit(1e-9)


def test_a_limit_is_spent_by_time_and_none_never_is():
    assert SPENT.is_over
    assert SPENT.spent == 1
    assert TimeLimit().spent == 0
    assert TimeLimit().part(0.5).seconds is None
    assert 0 <= TimeLimit(3600).spent < 1
    assert TimeLimit(10).part(0.2).seconds == pytest.approx(2)


def test_a_training_out_of_time_ends_in_its_epoch_and_scores_the_network_it_has(table):
    parts = split_table(table, SMALL)
    trained = train(parts, replace(SMALL, epochs=50), limit=SPENT)
    (row,) = trained.history
    assert row["regret@1"] >= 1
    assert (predict_times(trained.network, parts.test) > 0).all()


def test_minutes_above_zero_and_no_teachers():
    assert TrainOptions(minutes=0.5).minutes == 0.5
    for wrong in ({"minutes": 0}, {"minutes": float("nan")}, {"minutes": 1, "teachers": 2}):
        with pytest.raises(InvalidValueError, match=r"train\.(minutes|teachers)"):
            TrainOptions(**wrong)
