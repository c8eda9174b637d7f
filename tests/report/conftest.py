"""The report of the shipped model on some of the shipped timings, made once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import SHIPPED_TIMINGS
from torch_diode.files.datasets import read_dataset
from torch_diode.report.build import report_data
from torch_diode.report.page import write_page
from torch_diode.report.predictions import PredictedTimings


@pytest.fixture(scope="session")
def dataset():
    """Every eightieth problem of the shipped timings that has a choice."""
    whole = read_dataset(SHIPPED_TIMINGS)
    ids = whole.problems.ids
    return whole.take((ids % 80 == 0) & (np.bincount(ids)[ids] > 1))


@pytest.fixture(scope="session")
def result(dataset):
    """Data and validation of a page; the default list is tested with the baselines."""
    return report_data(dataset, default_list=False)


@pytest.fixture(scope="session")
def data(result):
    return result[0]


@pytest.fixture(scope="session")
def predicted(result):
    return PredictedTimings.of(result[1])


@pytest.fixture(scope="session")
def page_file(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_page(file, data)
    return file
