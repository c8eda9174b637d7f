"""A few hundred real problems, read once: what the tests of the model room work on."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.model.features.table import FeatureTable, feature_table

DATA = Path(__file__).parents[2] / "diode_datasets/matmul/nvidia-h200/train/sweep-1.parquet"


def rows_of(table: FeatureTable, keep: np.ndarray) -> FeatureTable:
    """A table with some of its rows."""
    names = [f.name for f in fields(table) if f.name not in ("arrays", "splits")]
    lengths = {name: len(getattr(table, name)) for name in names}
    rows = [name for name, length in lengths.items() if length == len(table.group)]
    return replace(table, **{name: getattr(table, name)[keep] for name in rows})


@pytest.fixture(scope="session")
def hardware():
    return known("nvidia-h200")


@pytest.fixture(scope="session")
def dataset():
    """Every sixtieth problem of the shipped timings, where there is a choice."""
    whole = read_dataset(DATA)
    ids = whole.problems.ids
    return whole.take((ids % 60 == 0) & (np.bincount(ids)[ids] > 1))


@pytest.fixture(scope="session")
def table(dataset, hardware):
    return feature_table(dataset, hardware)


@pytest.fixture(scope="session")
def rng():
    return np.random.default_rng(0)
