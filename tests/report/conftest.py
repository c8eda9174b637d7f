"""The report of the shipped model on some of the shipped timings, made once."""

import pytest

from tests.conftest import shipped_timings
from torch_diode.report.build import report
from torch_diode.report.predictions import PredictedTimings


@pytest.fixture(scope="session")
def dataset():
    """Every eightieth problem of the shipped timings that has a choice."""
    return shipped_timings(80)


@pytest.fixture(scope="session")
def result(dataset, tmp_path_factory):
    """A report; the default list is tested with the baselines."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    return report(dataset, file, default_list=False)


@pytest.fixture(scope="session")
def data(result):
    return result.data


@pytest.fixture(scope="session")
def predicted(result):
    return PredictedTimings.of(result.validation)


@pytest.fixture(scope="session")
def page_file(result):
    return result.path
