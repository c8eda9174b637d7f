"""What several networks agree on, and the problems they are asked about."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.cli.program import inside
from torch_diode.candidates import candidate_space
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.model.checkpoint import load_weights
from torch_diode.model.evaluation.scoring import predict_log_ratio
from torch_diode.model.features.names import TEMPLATES
from torch_diode.model.features.table import feature_table
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.model.training.distillation import DistillationOptions
from torch_diode.model.training.trainer import SplitTables, TrainingOptions, split_table, train
from torch_diode.toolkit.training import distillation as teachers
from torch_diode.types.problem import MMShape

H200 = known("nvidia-h200")


def test_new_problems_have_the_sizes_and_kinds_of_old_ones() -> None:
    old = [
        MMShape("mm", 3 + i, 64 * (1 + i % 5), 128 * (1 + i % 7), transpose_b=bool(i % 2))
        for i in range(60)
    ]
    new = teachers.recombined(old, seed=0)
    assert len(new) > 10
    assert new == teachers.recombined(old, seed=0)
    assert not set(new) & set(old)
    for problem in new:
        kin = [p for p in old if p.layout == problem.layout]
        assert problem.M in {p.M for p in kin}
        assert problem.N in {p.N for p in kin}
        assert problem.K in {p.K for p in kin}
        assert problem.flops <= max(p.flops for p in kin)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Teachers and lessons that take seconds."""
    small = {**teachers._TEACHER, "shape": {"hidden": 16}, "epochs": 3}
    monkeypatch.setattr(teachers, "_TEACHER", small)
    monkeypatch.setattr(teachers, "_BEST", 12)
    monkeypatch.setattr(teachers, "_OTHERS", 8)
    monkeypatch.setattr(teachers, "_DRAWN_SHARE", 0.5)


OPTIONS = TrainingOptions(shape={"hidden": 16}, epochs=3, aten_epochs=2, batch_problems=16)


@pytest.mark.usefixtures("few")
def test_a_lesson_is_what_all_say_of_what_the_model_thinks_best(
    timings: Path, tmp_path: Path
) -> None:
    dataset = read_dataset(timings / "train.parquet")
    parts = split_table(feature_table(dataset, H200), OPTIONS)
    teachers = made(parts, OPTIONS, [tmp_path / "a", tmp_path / "b"])
    first, second = (network.out.weight.detach().numpy() for network in teachers)
    assert not np.array_equal(first, second), "each teacher has a seed of its own"
    network = train(parts, OPTIONS).network
    problems = teachers._problems(parts.train, dataset)[:6]
    table = teachers.distillation_set(problems, network, teachers, H200, OPTIONS)
    assert table.is_config.all()
    mean = sum(predict_log_ratio(n, table) for n in (*teachers, network)) / 3
    assert np.allclose(table.target, mean, atol=1e-5)
    own = predict_log_ratio(network, table)
    model = served(network)
    for number, problem in enumerate(problems):
        space = candidate_space(problem, H200, TEMPLATES)
        best = np.log(model.predict_us(problem, space, H200).min() / table.roofline[number])
        # One of the others may be better still: a glance had it wrong.
        assert np.abs(own[table.group == number] - best).min() < 1e-4


@pytest.mark.usefixtures("few")
def test_a_lesson_brings_the_model_nearer_to_its_teachers_and_leaves_the_heads(
    timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DistillationOptions, "__init__", _short(DistillationOptions.__init__))
    dataset = read_dataset(timings / "train.parquet")
    parts = split_table(feature_table(dataset, H200), OPTIONS)
    teachers = made(parts, OPTIONS, [tmp_path / "a", tmp_path / "b"])
    trained = train(parts, OPTIONS)
    heads = {n: v.clone() for n, v in trained.network.aten.named_parameters()}
    table = teachers.distillation_set(
        teachers._problems(parts.train, dataset), trained.network, teachers, H200, OPTIONS
    )
    before = predict_log_ratio(trained.network, table)
    after = teachers.distill(trained, teachers, parts, dataset, H200)
    now = predict_log_ratio(after.network, table)
    error = [np.abs(found - table.target).mean() for found in (before, now)]
    assert error[1] < 0.8 * error[0]
    assert all(torch.equal(v, heads[n]) for n, v in after.network.aten.named_parameters())
    assert [row["epoch"] for row in after.history] == list(range(1, 3 + 4 + 1))


@pytest.mark.usefixtures("few")
def test_teachers_that_were_stopped_go_on_and_end_the_same(
    timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(OPTIONS, evaluate_every=1)
    parts = split_table(feature_table(read_dataset(timings / "train.parquet"), H200), options)
    whole = made(parts, options, [tmp_path / "a", tmp_path / "b"])

    def stop(_: object, row: dict[str, float]) -> None:
        if row["epoch"] == 3:
            raise KeyboardInterrupt

    states = [tmp_path / "c", tmp_path / "d"]
    with monkeypatch.context() as patched:
        patched.setattr(teachers.TrainingProgress, "tell", stop)
        with pytest.raises(KeyboardInterrupt):
            made(parts, options, states)
    assert [path.exists() for path in states] == [True, False]
    again = made(parts, options, states)
    for network, other in zip(whole, again, strict=True):
        for name, value in network.state_dict().items():
            assert torch.allclose(value, other.state_dict()[name], atol=1e-5), name


@pytest.mark.usefixtures("few")
def test_the_command_trains_all_of_them_and_leaves_the_model_alone(
    timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DistillationOptions, "__init__", _short(DistillationOptions.__init__))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    model = tmp_path / "m.pt"
    (tmp_path / "m.pt.teacher-7").write_text("left by a run that asked for more")
    ended = inside(
        *("--seed", "3", "train", "--dataset", timings / "train.parquet", "--model", model),
        *("--teachers", "2", "--num-epochs", "3", "--hidden-dim", "16", "--num-layers", "1"),
    )
    assert ended.code == 0, ended.err
    assert "3 networks, 2 side by side" in ended.out
    assert "A lesson of" in ended.out
    assert "stopped" not in ended.out
    assert load_weights(model)[0].options["teachers"] == 2
    assert not [*tmp_path.glob("*.state"), *tmp_path.glob("*.teacher-*")]


def made(parts: SplitTables, options: TrainingOptions, states: list[Path]) -> list[TimingNetwork]:
    return teachers.make_teachers(teachers.teacher_jobs(parts, options, states))


def _short(init: Callable[..., None]) -> Callable[..., None]:
    return lambda self, **given: init(self, **{**given, "epochs": 4})


def served(network: TimingNetwork) -> NumpyNetwork:
    return NumpyNetwork("deep", {n: v.numpy() for n, v in network.state_dict().items()})
