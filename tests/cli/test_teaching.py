"""What several networks agree on, and the problems they are asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torch_diode.cli import teaching
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.model.feature_table import feature_table
from torch_diode.model.networks import TimingNetwork
from torch_diode.model.scoring import predict_log_ratio
from torch_diode.model.training import TrainingOptions, split_table, train_configs
from torch_diode.types.problem import MMShape

H200 = known("nvidia-h200")


def test_new_problems_have_the_sizes_and_kinds_of_old_ones() -> None:
    old = [
        MMShape("mm", 3 + i, 64 * (1 + i % 5), 128 * (1 + i % 7), transpose_b=bool(i % 2))
        for i in range(60)
    ]
    new = teaching.recombined(old, seed=0)
    assert len(new) > 10
    assert new == teaching.recombined(old, seed=0)
    assert not set(new) & set(old)
    for problem in new:
        kin = [p for p in old if p.layout == problem.layout]
        assert problem.M in {p.M for p in kin}
        assert problem.N in {p.N for p in kin}
        assert problem.K in {p.K for p in kin}
        assert problem.flops <= max(p.flops for p in kin)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Teachers that take seconds."""
    small = {**teaching._TEACHER, "shape": {"hidden": 16}, "epochs": 3}
    monkeypatch.setattr(teaching, "_TEACHER", small)
    monkeypatch.setattr(teaching, "_CONFIGS", 20)


@pytest.mark.usefixtures("few")
def test_the_model_learns_from_measured_times_and_from_the_teachers_mean(
    timings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = read_dataset(timings / "train.parquet")
    options = TrainingOptions(batch_problems=16)
    parts = split_table(feature_table(dataset, H200), options)
    networks: list[TimingNetwork] = []

    def watched(*given: Any) -> TimingNetwork:
        networks.append(train_configs(*given))
        return networks[-1]

    monkeypatch.setattr(teaching, "train_configs", watched)
    after = teaching.taught(parts, dataset, H200, options, 2)
    assert after.test is parts.test
    assert after.validation is parts.validation
    count = len(parts.train.group)
    mean = sum(predict_log_ratio(n, parts.train) for n in networks) / 2
    is_config = parts.train.is_config
    between = 0.4 * parts.train.target + 0.6 * mean
    assert np.allclose(after.train.target[:count][is_config], between[is_config], atol=1e-4)
    assert np.array_equal(after.train.time_us[:count][~is_config], parts.train.time_us[~is_config])
    assert len(after.train.group) > count, "unmeasured problems stand beside the measured ones"
    assert after.train.is_config[count:].all()
    first, second = (network.out.weight.detach().numpy() for network in networks)
    assert not np.array_equal(first, second), "each teacher has a seed of its own"
