"""Training of a CPU's network."""

import numpy as np
import pytest

from tests.cpu_timings import cpu_timings
from torch_diode.hardware import find
from torch_diode.model.evaluation.scoring import predict_log_ratio, regret_scores
from torch_diode.model.features.table import feature_table
from torch_diode.model.training.library_training import LIBRARY_DEFAULTS, LabelArrays, train_library
from torch_diode.model.training.options import TrainingOptions
from torch_diode.model.training.split import split_table

ZEN5 = find("amd-zen5", 1)
DATASET = cpu_timings(150)
OPTIONS = TrainingOptions(
    kind="library", **{**LIBRARY_DEFAULTS, "epochs": 20, "batch_problems": 32}
)


@pytest.fixture(scope="module")
def parts():
    return split_table(feature_table(DATASET, ZEN5), OPTIONS)


@pytest.fixture(scope="module")
def trained(parts):
    return train_library(parts, OPTIONS)


def test_it_chooses_well_on_problems_it_has_not_seen(parts, trained):
    ratio = predict_log_ratio(trained.network, parts.test)
    first = regret_scores(parts.test, ratio)[0]
    always_aten = regret_scores(parts.test, np.where(parts.test.is_aten, -99.0, ratio))[0]
    assert first.geomean < 1.04
    assert always_aten.geomean > 1.3


def test_what_was_not_timed_is_not_learnt_from(parts):
    table = parts.train
    data = LabelArrays.of(table, table.labels)
    assert int(data.mask.sum()) == len(table.group)
    assert float(data.target[data.mask == 0].abs().sum()) == 0
    assert LabelArrays.of(table, ("aten", "another")).mask.sum(0).tolist() == [len(data), 0]


def test_a_seed_gives_the_same_network(parts, trained):
    short = TrainingOptions(kind="library", **{**LIBRARY_DEFAULTS, "epochs": 2})
    one, two = (train_library(parts, short).network.state_dict() for _ in range(2))
    assert all(bool((one[name] == two[name]).all()) for name in one)


def test_a_candidate_that_was_hardly_timed_has_no_output(parts):
    template, names = DATASET.codes("template")
    rare = (template == names.index("onednn_packed")) & (DATASET.problems.ids > 0)
    few = split_table(feature_table(DATASET.take(~rare), ZEN5), OPTIONS)
    short = TrainingOptions(kind="library", **{**LIBRARY_DEFAULTS, "epochs": 1})
    assert "onednn_packed" not in train_library(few, short).network.labels


def test_the_uncertainty_is_about_the_error(parts, trained):
    import torch

    data = LabelArrays.of(parts.test, trained.network.labels)
    with torch.no_grad():
        members = trained.network(data.problem)
        sigma = trained.network.log_sigma(data.problem, members).exp()
    error = (members.mean(0) - data.target) * data.mask
    error = (error - error.sum(1, keepdim=True) / data.mask.sum(1, keepdim=True)) * data.mask
    typical = float(torch.sqrt((error**2).sum() / data.mask.sum()))
    stated = float(torch.sqrt(((sigma**2) * data.mask).sum() / data.mask.sum()))
    # Rather too large than too small: it is what keeps torch's own choice.
    assert 0.5 < stated / typical < 4
