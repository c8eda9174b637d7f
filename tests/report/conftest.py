"""Real timings and the shipped model, and the report made of them, once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.model.registry import ModelRegistry
from torch_diode.report.build import report_data
from torch_diode.report.page import write_page
from torch_diode.report.predictions import LoadedModel, timings_of

DATA = Path(__file__).parents[2] / "diode_datasets/matmul/nvidia-h200/train/sweep-1.parquet"


@pytest.fixture(scope="session")
def hardware():
    return known("nvidia-h200")


@pytest.fixture(scope="session")
def model(hardware):
    return LoadedModel.load(ModelRegistry().find("matmul", hardware).path)


@pytest.fixture(scope="session")
def dataset():
    """Every eightieth problem of the shipped timings, where there is a choice."""
    whole = read_dataset(DATA)
    ids = whole.problems.ids
    return whole.take((ids % 80 == 0) & (np.bincount(ids)[ids] > 1))


@pytest.fixture(scope="session")
def timings(dataset, hardware, model):
    return timings_of(dataset, hardware, model)


@pytest.fixture(scope="session")
def data(dataset, hardware, model):
    """What the page shows; the default list is left out, it has a test of its own."""
    return report_data(dataset, model, hardware, ("sweep.parquet", "matmul.pt"))


@pytest.fixture(scope="session")
def page_file(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_page(file, data)
    return file
