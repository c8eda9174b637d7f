"""Problems with ATen alone, and splits of K, on their way through training to a ranking."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torch_diode import Candidate, Candidates, Dataset, MMShape
from torch_diode.candidates.gpu.eligibility import k_splits
from torch_diode.model.evaluation.scoring import predict_log_ratio, predict_times
from torch_diode.model.features.table import feature_table
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.model.training.batches import aten_calls, split_calls
from torch_diode.model.training.options import TrainingOptions
from torch_diode.model.training.split import split_table
from torch_diode.model.training.trainer import train

OPTIONS = TrainingOptions(
    shape={"hidden": 8, "layers": 1, "aten_hidden": 16},
    epochs=1,
    batch_problems=32,
    evaluate_every=1,
    aten_epochs=30,
    split_epochs=60,
)


def split_timings(like):
    """Splits of K take what their traffic takes: simple enough for a small head to learn."""
    for m in (16, 32, 64):
        for n in (16, 32, 48):
            for k in (4096, 6144, 8192, 16384, 32768):
                problem = MMShape("mm", M=m, N=n, K=k)
                for split in k_splits(problem):
                    took = 5 + problem.bytes_moved / 4e6 + 0.02 * split
                    candidate = Candidate("decompose_k", split_k=split)
                    yield replace(like, problem=problem, candidate=candidate, time_us=took)


@pytest.fixture(scope="module")
def mixed(dataset):
    """Real problems with all their candidates, as many with ATen alone, and splits of K."""
    codes, names = dataset.codes("template")
    whole = dataset.problems.ids % 2 == 0
    kept = dataset.take(whole | (codes == names.index("aten")))
    like = replace(kept[0], spread=0.01, repeats=9)
    return Dataset.merge([kept, Dataset.from_timings(split_timings(like))])


@pytest.fixture(scope="module")
def parts(mixed, h200):
    torch.set_num_threads(1)
    return split_table(feature_table(mixed, h200), OPTIONS)


@pytest.fixture(scope="module")
def trained(parts):
    return train(parts, OPTIONS)


def test_a_problem_with_aten_alone_teaches_its_head_and_scores_no_ranking(parts):
    alone = np.bincount(parts.train.group, minlength=len(parts.train.problem)) == 1
    calls = aten_calls(parts.train)
    assert alone[parts.train.group[calls.rows]].sum() > 50
    assert (np.bincount(parts.test.group)[np.unique(parts.test.group)] > 1).all()


def test_heads_learn(parts, trained):
    predicted = predict_log_ratio(trained.network, parts.validation)
    for calls, most in ((aten_calls(parts.validation), 0.9), (split_calls(parts.validation), 0.5)):
        error = predicted[calls.rows] - calls.target.numpy()
        assert np.sqrt(np.square(error).mean()) < most * calls.target.numpy().std()


def test_numpy_ranks_splits_as_torch_does(mixed, parts, trained, h200):
    weights = {name: value.numpy() for name, value in trained.network.state_dict().items()}
    ours = NumpyNetwork("deep", weights)
    table = parts.validation
    expected = predict_times(trained.network, table)
    numbers = np.unique(table.group[table.split >= 0])
    assert len(numbers)
    for number in numbers:
        rows = np.flatnonzero(table.group == number)
        candidates = Candidates.of(mixed[int(row)].candidate for row in table.rows[rows])
        problem = mixed.problem(int(table.rows[rows[0]]))
        times, sigma = ours.predict(problem, candidates, h200)
        assert np.allclose(times, expected[rows], rtol=2e-4)
        assert (sigma > 0).all()


def test_without_timings_of_splits_their_head_stays_shut(table):
    network = train(split_table(table, OPTIONS), replace(OPTIONS, aten_epochs=1)).network
    assert network.aten.trained == 1
    assert network.split.trained == 0
