"""The error estimate: learnt from errors, freed of noise, the same in numpy and in torch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torch_diode.model.networks.timing_models import build_network
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.model.training.uncertainty import (
    CONFIGS,
    VENDOR,
    calibration_points,
    errors_of,
    fit_uncertainty,
    row_uncertainties,
)
from torch_diode.types.candidate_arrays import Candidates


@pytest.fixture
def network(table):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = build_network("deep", {"hidden": 8, "layers": 1, "aten_hidden": 8})
    network.problem_norm.fit(torch.from_numpy(table.problem))
    both = np.concatenate([table.problem, table.vendor], axis=1)
    network.aten.norm.fit(torch.from_numpy(both))
    return network.eval()


@pytest.fixture
def wrong(table):
    """Predictions that are off by a known amount: 3% for configs, 12% for ATen, and all of a
    problem together by more than either."""
    rng = np.random.default_rng(0)
    common = rng.normal(0, 0.2, len(table.problem))[table.group]
    own = rng.standard_normal(len(table.group)) * np.where(table.is_aten, 0.12, 0.03)
    return (table.target + common + own).astype(np.float32)


def exact(table):
    return replace(table, noise=np.zeros_like(table.noise))


def test_what_a_problems_predictions_have_in_common_is_no_error(table, wrong):
    found = errors_of(exact(table), wrong)
    for kind, size in ((CONFIGS, 0.03), (VENDOR, 0.12)):
        error = found.error[found.kind == kind]
        assert np.sqrt(np.square(error).mean()) == pytest.approx(size, rel=0.25)


def test_the_doubt_is_the_size_of_the_errors(table, wrong, network):
    fit_uncertainty(network, exact(table), wrong)
    sigma = row_uncertainties(network, table)
    assert np.median(sigma[table.is_config]) == pytest.approx(0.03, rel=0.3)
    assert np.median(sigma[table.is_aten]) == pytest.approx(0.12, rel=0.3)


def test_noise_is_not_taken_for_error(table, wrong, network):
    noise = np.full(len(table.group), 0.03, np.float32)
    fit_uncertainty(network, replace(table, noise=noise), wrong)
    assert np.median(row_uncertainties(network, table)[table.is_config]) < 0.02


def test_numpy_doubts_as_torch_does(dataset, table, wrong, network, h200):
    fit_uncertainty(network, exact(table), wrong)
    expected = row_uncertainties(network, table)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    ours = NumpyNetwork("deep", weights)
    for number in range(0, len(table.problem), 31):
        rows = np.flatnonzero(table.group == number)
        candidates = Candidates.of(dataset[int(row)].candidate for row in table.rows[rows])
        problem = dataset.problem(int(table.rows[rows[0]]))
        sigma = ours.predict(problem, candidates, h200)[1]
        assert np.allclose(sigma, expected[rows], rtol=1e-3)


@pytest.fixture
def found(table):
    """Times that differ from what was predicted by errors of known size, drawn eight times: the
    regret of two hundred decisions is mostly luck."""
    rng = np.random.default_rng(0)
    sigma = np.where(table.is_aten, 0.12, 0.03).astype(np.float32)
    made = []
    for _ in range(8):
        times = table.time_us * np.exp(sigma * rng.standard_normal(len(sigma)))
        made += calibration_points(replace(exact(table), time_us=times), table.target, sigma)
    return made


@pytest.mark.parametrize("k", [1, 2, 4])
def test_expected_regret_is_measured_regret_where_the_errors_are_known(found, k):
    measured = np.mean([decision.regret(k) for decision in found])
    assert measured == pytest.approx(np.mean([d.expected(k) for d in found]), rel=0.3)
