import numpy as np
import pytest

from torch_diode.model.checkpoint import load_network
from torch_diode.model.evaluation.scoring import predict_times
from torch_diode.toolkit.training.fine_tuning import concat_tables, replay, without_measured


@pytest.fixture(scope="module")
def replayed(trained, h200):
    metadata, network = load_network(trained)
    return metadata, network, replay(network, metadata, h200, 60, seed=0)


def test_the_times_are_the_models_own(replayed):
    _, network, table = replayed
    assert np.allclose(predict_times(network, table), table.time_us)


def test_every_problem_has_aten_and_every_pair_the_model_covers_is_there(replayed):
    metadata, _, table = replayed
    assert set(table.group[table.is_aten].tolist()) == set(range(len(table.problem)))
    pairs = set(zip(table.arrays.op.tolist(), table.arrays.precision.tolist(), strict=True))
    assert len(pairs) == len(metadata.covers)


def test_concatenated_tables_keep_problems_apart(replayed):
    _, _, table = replayed
    both = concat_tables(table, table)
    assert len(both.problem) == 2 * len(table.problem)
    assert both.group.max() == 2 * len(table.problem) - 1
    assert np.array_equal(both.target[len(table.group) :], table.target)
    assert len(both.arrays) == len(both.problem)


def test_of_another_chip_only_what_was_not_measured_here_is_replayed(replayed):
    _, _, table = replayed
    first = (table.arrays.op == 0) & (table.arrays.precision == 0)
    here = table.take(first)
    small = here.take_rows(here.is_aten | (np.arange(len(here.group)) % 2 == 0))
    left = without_measured(table, small)
    there = first[left.group]
    assert np.count_nonzero(~there) == np.count_nonzero(~first[table.group])
    assert not left.is_aten[there].any()
    assert 0 < np.count_nonzero(there) < np.count_nonzero(first[table.group])
    assert not (without_measured(here, here).is_config).any()
