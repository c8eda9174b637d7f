"""A few hundred real problems, read once for all tests of the model package."""

import numpy as np
import pytest

from tests.conftest import shipped_timings
from torch_diode.model.features.table import feature_table


@pytest.fixture(scope="session")
def dataset():
    """Every sixtieth problem of the shipped timings, where there is a choice."""
    return shipped_timings(60)


@pytest.fixture(scope="session")
def table(dataset, h200):
    return feature_table(dataset, h200)


@pytest.fixture(scope="session")
def rng():
    return np.random.default_rng(0)
