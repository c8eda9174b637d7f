"""A few hundred real problems, read once for all tests of the model package."""

from dataclasses import fields, replace

import numpy as np
import pytest

from tests.conftest import SHIPPED_TIMINGS
from torch_diode.files.datasets import read_dataset
from torch_diode.model.features.table import FeatureTable, feature_table


def rows_of(table: FeatureTable, keep: np.ndarray) -> FeatureTable:
    """A table with some of its rows."""
    names = [f.name for f in fields(table) if f.name not in ("arrays", "splits")]
    lengths = {name: len(getattr(table, name)) for name in names}
    rows = [name for name, length in lengths.items() if length == len(table.group)]
    return replace(table, **{name: getattr(table, name)[keep] for name in rows})


@pytest.fixture(scope="session")
def dataset():
    """Every sixtieth problem of the shipped timings, where there is a choice."""
    whole = read_dataset(SHIPPED_TIMINGS)
    ids = whole.problems.ids
    return whole.take((ids % 60 == 0) & (np.bincount(ids)[ids] > 1))


@pytest.fixture(scope="session")
def table(dataset, h200):
    return feature_table(dataset, h200)


@pytest.fixture(scope="session")
def rng():
    return np.random.default_rng(0)
