"""A tuned model's memory: what it said before, of problems drawn all over its range."""

from __future__ import annotations

import numpy as np
import pytest
from torch_diode.toolkit.training.replay import joined, replay

from torch_diode.hardware import known
from torch_diode.model.checkpoint import load_network
from torch_diode.model.evaluation.scoring import predict_times

H200 = known("nvidia-h200")


@pytest.fixture(scope="module")
def memory(trained):
    metadata, network = load_network(trained)
    return metadata, network, replay(network, metadata, H200, 60, seed=0)


def test_the_times_are_the_models_own(memory):
    _, network, table = memory
    assert np.allclose(predict_times(network, table), table.time_us)


def test_every_problem_has_aten_and_every_pair_the_model_covers_is_there(memory):
    metadata, _, table = memory
    assert set(table.group[table.is_aten].tolist()) == set(range(len(table.problem)))
    pairs = set(zip(table.arrays.op.tolist(), table.arrays.precision.tolist(), strict=True))
    assert len(pairs) == len(metadata.covers)


def test_a_seed_draws_the_same_again(memory):
    metadata, network, table = memory
    again = replay(network, metadata, H200, 60, seed=0)
    assert np.array_equal(again.config, table.config)


def test_joined_tables_keep_problems_apart(memory):
    _, _, table = memory
    both = joined(table, table)
    assert len(both.problem) == 2 * len(table.problem)
    assert both.group.max() == 2 * len(table.problem) - 1
    assert np.array_equal(both.target[len(table.group) :], table.target)
    assert len(both.arrays) == len(both.problem)
