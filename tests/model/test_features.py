"""One extractor: a dataset's rows and a compile's candidates get the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tests.strategies import problems as any_problem
from torch_diode.candidates.space import candidate_space
from torch_diode.hardware import known
from torch_diode.model.features import (
    CONFIG_NAMES,
    FEATURE_NAMES,
    JOINT_NAMES,
    PROBLEM_NAMES,
    VENDOR_NAMES,
    config_arrays,
    joint_features,
    problem_features,
    roofline_us,
    vendor_features,
)
from torch_diode.model.problem_arrays import ProblemArrays
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.candidates import Candidates
from torch_diode.types.problem import MMShape

H200 = known("nvidia-h200")


def joint_of(problem, *configs, template="triton::mm"):
    candidates = Candidates.of(Candidate(template, config) for config in configs)
    arrays = config_arrays(candidates, problem, H200)
    values = joint_features(ProblemArrays.of(problem), arrays, H200)
    return {name: values[:, i] for i, name in enumerate(JOINT_NAMES)}


def test_dataset_and_single_problem_agree_to_the_last_bit(dataset, table, hardware):
    for number in range(0, len(table.problem), 17):
        problem = dataset.problem(int(dataset.problems.first[number]))
        arrays = ProblemArrays.of(problem)
        assert np.array_equal(problem_features(arrays, hardware)[0], table.problem[number])
        assert np.array_equal(vendor_features(arrays, hardware)[0], table.vendor[number])
        assert roofline_us(arrays, hardware)[0] == table.roofline[number]
        rows = np.flatnonzero(table.group == number)
        candidates = Candidates.of(dataset[int(row)].candidate for row in table.rows[rows])
        configs = config_arrays(candidates, problem, hardware)
        joint = joint_features(arrays, configs, hardware)
        triton = ~table.is_aten[rows]
        found = np.concatenate([configs.features, joint], axis=1)[triton]
        assert np.array_equal(found, table.config[rows][triton])


def test_aten_has_zeros_for_its_config(table):
    assert table.is_aten.any()
    assert not table.config[table.is_aten].any()


def test_every_column_has_a_name_of_its_own(table):
    assert table.problem.shape[1] == len(PROBLEM_NAMES)
    assert table.vendor.shape[1] == len(VENDOR_NAMES)
    assert table.config.shape[1] == len(CONFIG_NAMES) + len(JOINT_NAMES)
    assert len({*FEATURE_NAMES, *VENDOR_NAMES}) == len(FEATURE_NAMES) + len(VENDOR_NAMES)


def test_features_of_real_data_are_finite_float32(table):
    for block in (table.problem, table.vendor, table.config, table.target):
        assert block.dtype == np.float32
        assert np.isfinite(block).all()


@settings(max_examples=40, deadline=None)
@given(problem=any_problem())
def test_any_problem_has_finite_features(problem):
    arrays = ProblemArrays.of(problem)
    candidates = candidate_space(problem, H200)
    configs = config_arrays(candidates, problem, H200)
    for block in (
        problem_features(arrays, H200),
        vendor_features(arrays, H200),
        joint_features(arrays, configs, H200),
        configs.features,
    ):
        assert np.isfinite(block).all()


def test_tiles_waves_and_waste_follow_from_the_sizes():
    problem = MMShape("mm", M=300, N=256, K=100)
    f = joint_of(problem, TritonGEMMConfig(128, 128, 64))
    assert f["log2_tiles_m"] == pytest.approx(np.log2(3))
    assert f["log2_tiles"] == pytest.approx(np.log2(6))
    assert f["log2_k_steps"] == 1
    assert f["fill_m"] == pytest.approx(300 / 384)
    assert f["fill_k"] == pytest.approx(100 / 128)
    assert f["unit_use"] == pytest.approx(6 / 132)


@pytest.mark.parametrize(("k", "even"), [(128, 1.0), (96, 0.0), (64, 1.0), (1, 0.0)])
def test_even_k_is_whether_the_block_divides_k(k, even):
    f = joint_of(MMShape("mm", M=64, N=64, K=k), TritonGEMMConfig(64, 64, 64))
    assert f["even_k"] == even


def test_no_kernel_is_faster_than_its_roofline(table):
    assert (table.time_us >= table.roofline[table.group] * 0.9).mean() > 0.999
