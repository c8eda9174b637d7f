"""The prefilter keeps the candidates that count: the top of the ranking is unchanged."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.model.serving.test_inference import made
from torch_diode import Candidates, MMShape, ModelRegistry
from torch_diode.candidates.space import candidate_space
from torch_diode.files.datasets import read_dataset
from torch_diode.model.checkpoint import load_model, load_network
from torch_diode.model.evaluation.scoring import predict_times
from torch_diode.model.features.table import feature_table
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.model.serving.layers import PREFILTERED
from torch_diode.model.training.batches import ProblemBatches
from torch_diode.model.training.prefilter import fit_prefilter

APART = Path(__file__).parents[3] / "diode_datasets/matmul/nvidia-h200/validation"


@pytest.fixture(scope="module")
def shipped(h200):
    return ModelRegistry().find("matmul", h200).path


@pytest.fixture(scope="module")
def apart():
    """Problems the shipped model was not trained on, with every candidate there is."""
    whole = read_dataset(APART)
    return whole.take(whole.problems.ids % 15 == 0)


def test_the_first_of_a_whole_space_are_those_of_the_whole_network(shipped, apart, h200):
    table = feature_table(apart, h200)
    expected = predict_times(load_network(shipped)[1], table)
    model = load_model(shipped)
    same_first = same_five = met = 0
    for number in np.unique(table.group):
        rows = np.flatnonzero(table.group == number)
        if len(rows) <= 2 * PREFILTERED:
            continue
        candidates = Candidates.of(apart[int(row)].candidate for row in table.rows[rows])
        problem = apart.problem(int(table.rows[rows[0]]))
        times, _ = model.predict_us(problem, candidates, h200)
        ours, whole = (np.argsort(t, kind="stable")[:5] for t in (times, expected[rows]))
        met += 1
        same_first += ours[0] == whole[0]
        same_five += set(ours) == set(whole)
    assert met > 20
    assert same_first >= 0.99 * met
    assert same_five >= 0.95 * met


def test_no_candidate_that_was_filtered_out_comes_among_the_first(table, h200):
    network = made("deep", table)
    with torch.no_grad():
        # A prefilter whose times are far too short.
        network.prefilter_out.bias[-1] -= 5
    arrays = {name: value.numpy() for name, value in network.state_dict().items()}
    problem = MMShape("mm", M=4096, N=4096, K=4096)
    space = candidate_space(problem, h200)
    assert len(space) > 4 * PREFILTERED
    found = ranked(arrays, problem, space, h200)
    alone = ranked(arrays, problem, space.take(found[: PREFILTERED // 2]), h200)
    assert np.array_equal(alone, np.arange(PREFILTERED // 2))


def ranked(arrays, problem, candidates, h200):
    times = NumpyNetwork("deep", arrays).predict_us(problem, candidates, h200)
    return np.argsort(times, kind="stable")


def test_fitting_the_prefilter_changes_nothing_else(table):
    network = made("deep", table)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    batches = ProblemBatches(table)
    batch = next(batches.draw(64))
    inputs = batch.problem, batch.config, batch.group

    def difference():
        predicted, output = network.with_prefilter(*inputs)
        assert torch.equal(predicted, network(*inputs))
        return torch.square(predicted - output).mean().item()

    first = difference()
    fit_prefilter(network, batches)
    assert difference() < first / 4
    changed = {n for n, v in network.state_dict().items() if not torch.equal(v, before[n])}
    assert changed == {"prefilter_out.weight", "prefilter_out.bias"}
