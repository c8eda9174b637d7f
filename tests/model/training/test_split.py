"""Parts that share no problem."""

import numpy as np
import pytest

from torch_diode.model.training.options import TrainingOptions
from torch_diode.model.training.split import held_out, split, split_table
from torch_diode.types.errors import EmptySelectionError


def test_parts_do_not_meet_and_have_their_share(table):
    test = held_out(table.arrays, 0.3, seed=1)
    check = held_out(table.arrays, 0.2, seed=1, skip=0.3)
    assert not (test & check).any()
    assert 0.2 < test.mean() < 0.4
    assert 0.1 < check.mean() < 0.3


def test_a_seed_always_gives_the_same_parts(table):
    again = held_out(table.arrays, 0.3, seed=1)
    assert np.array_equal(held_out(table.arrays, 0.3, seed=1), again)
    assert not np.array_equal(held_out(table.arrays, 0.3, seed=2), again)


def test_one_size_falls_on_one_side_in_every_dtype_and_layout(table):
    p = table.arrays
    test = held_out(p, 0.5)
    sizes = np.stack([p.op, p.B, p.M, p.N, p.K], axis=1)
    _, which = np.unique(sizes, axis=0, return_inverse=True)
    for number in np.unique(which):
        assert len(set(test[which.ravel() == number].tolist())) == 1


def test_a_problem_keeps_its_side_whatever_stands_beside_it(table):
    some = np.arange(0, len(table.problem), 3)
    assert np.array_equal(held_out(table.arrays.take(some), 0.4), held_out(table.arrays, 0.4)[some])


def test_few_problems_are_trained_on_and_stopped_by_but_not_tested_on(table):
    for count in (2, 10, 30):
        test, check = split(table.arrays.take(np.arange(count)), 0.15, 0.10)
        assert not test.any()
        assert 1 <= np.count_nonzero(check) <= max(count // 3, 1)


def test_another_runs_test_part_is_split_too(table):
    """Chosen by the very hash that splits, all of it would fall on one side."""
    part = table.arrays.take(held_out(table.arrays, 0.5))
    test, check = split(part, 0.5, 0.10)
    assert test.any()
    assert check.any()
    assert not (test | check).all()


def test_aten_alone_is_nothing_to_train_on(table):
    alone = table.take_rows(table.is_aten)
    with pytest.raises(EmptySelectionError, match="ATen alone"):
        split_table(alone, TrainingOptions())


def test_too_few_problems_are_refused(table):
    with pytest.raises(EmptySelectionError, match="training"):
        split_table(table.take(np.arange(len(table.problem)) < 1), TrainingOptions())
