import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from torch_diode import MMShape, Progress, TrainOptions
from torch_diode.candidates import candidate_space
from torch_diode.files.datasets import read_dataset
from torch_diode.model.evaluation.scoring import predict_log_ratio
from torch_diode.model.features.names import TEMPLATES
from torch_diode.model.features.table import feature_table
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.model.training.options import TrainingOptions
from torch_diode.model.training.split import SplitTables, split_table
from torch_diode.model.training.trainer import train
from torch_diode.toolkit.progress import ProgressCallback, log_progress
from torch_diode.toolkit.training import distillation as module
from torch_diode.toolkit.training.distillation import (
    DistillationOptions,
    distill_teachers,
    distillation_set,
)
from torch_diode.toolkit.training.train import train as train_model

OPTIONS = TrainingOptions(shape={"hidden": 16}, epochs=3, aten_epochs=2, batch_problems=16)


def test_new_problems_have_the_sizes_and_kinds_of_measured_ones():
    old = [
        MMShape("mm", 3 + i, 64 * (1 + i % 5), 128 * (1 + i % 7), transpose_b=bool(i % 2))
        for i in range(60)
    ]
    new = module.recombined(old, seed=0)
    assert len(new) > 10
    assert new == module.recombined(old, seed=0)
    assert not set(new) & set(old)
    for problem in new:
        kin = [p for p in old if p.layout == problem.layout]
        assert problem.M in {p.M for p in kin}
        assert problem.N in {p.N for p in kin}
        assert problem.K in {p.K for p in kin}
        assert problem.flops <= max(p.flops for p in kin)


@pytest.fixture
def quick(monkeypatch):
    """Teachers and distillation that take seconds."""
    small = {**module._TEACHER, "shape": {"hidden": 16}, "epochs": 3}
    for name, value in (("_TEACHER", small), ("_BEST", 12), ("_OTHERS", 8), ("_DRAWN_SHARE", 0.5)):
        monkeypatch.setattr(module, name, value)
    init: Callable[..., None] = DistillationOptions.__init__
    monkeypatch.setattr(
        DistillationOptions, "__init__", lambda self, **given: init(self, **{**given, "epochs": 4})
    )


@pytest.fixture
def dataset(timings):
    return read_dataset(timings / "train.parquet")


@pytest.fixture
def parts(dataset, h200):
    return split_table(feature_table(dataset, h200), OPTIONS)


def teachers_of(
    parts: SplitTables,
    states: list[Path],
    options: TrainingOptions = OPTIONS,
    progress: ProgressCallback = log_progress,
) -> list[TimingNetwork]:
    return module.train_teachers(module.teacher_jobs(parts, options, states), progress)


@pytest.mark.usefixtures("quick")
def test_distillation_brings_the_model_nearer_to_the_mean_of_all_networks(
    parts, dataset, h200, tmp_path
):
    teachers = teachers_of(parts, [tmp_path / "a", tmp_path / "b"])
    first, second = (network.out.weight.detach().numpy() for network in teachers)
    assert not np.array_equal(first, second), "each teacher has a seed of its own"
    trained = train(parts, OPTIONS)
    network = trained.network
    heads = {n: v.clone() for n, v in network.aten.named_parameters()}
    problems = module._problems(parts.train, dataset)
    table = distillation_set(problems, network, teachers, h200, OPTIONS)
    assert table.is_config.all()
    mean = sum(predict_log_ratio(n, table) for n in (*teachers, network)) / 3
    assert np.allclose(table.target, mean, atol=1e-5)
    before = predict_log_ratio(network, table)
    model = NumpyNetwork("deep", {n: v.numpy() for n, v in network.state_dict().items()})
    for number, problem in enumerate(problems[:6]):
        space = candidate_space(problem, h200, TEMPLATES)
        best = np.log(model.predict_us(problem, space, h200).min() / table.roofline[number])
        assert np.abs(before[table.group == number] - best).min() < 1e-4, "the model's best is in"
    after = distill_teachers(trained, teachers, parts, dataset, h200, log_progress)
    now = predict_log_ratio(after.network, table)
    error = [np.abs(predicted - table.target).mean() for predicted in (before, now)]
    assert error[1] < 0.8 * error[0]
    assert all(torch.equal(v, heads[n]) for n, v in after.network.aten.named_parameters())
    assert [row["epoch"] for row in after.history] == list(range(1, 3 + 4 + 1))


@pytest.mark.usefixtures("quick")
def test_teachers_that_were_stopped_continue_and_end_the_same(parts, tmp_path):
    options = replace(OPTIONS, evaluate_every=1)
    whole = teachers_of(parts, [tmp_path / "a", tmp_path / "b"], options)

    def stop(report):
        if report.done == 3:
            raise KeyboardInterrupt

    states = [tmp_path / "c", tmp_path / "d"]
    with pytest.raises(KeyboardInterrupt):
        teachers_of(parts, states, options, stop)
    assert [path.exists() for path in states] == [True, False]
    again = teachers_of(parts, states, options)
    for network, other in zip(whole, again, strict=True):
        for name, value in network.state_dict().items():
            assert torch.allclose(value, other.state_dict()[name], atol=1e-5), name


@pytest.mark.usefixtures("quick")
def test_training_with_teachers_leaves_the_model_alone(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    (tmp_path / "m.pt.teacher-7").write_text("left by a run with more teachers")
    reports: list[Progress] = []
    options = TrainOptions(teachers=2, num_epochs=3, hidden_dim=16, num_layers=1)
    result = train_model(dataset, tmp_path / "m.pt", options, seed=3, progress=reports.append)
    text = "\n".join(report.message for report in reports)
    assert "3 networks, 2 side by side" in text
    assert "Distilling" in text
    assert "stopped" not in text
    assert {"Training", "Distillation"} <= {report.stage for report in reports}
    assert result.metadata.options["teachers"] == 2
    assert not [*tmp_path.glob("*.state"), *tmp_path.glob("*.teacher-*")]
