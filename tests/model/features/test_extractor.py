"""One extractor: a dataset's rows and a compile's candidates get the same numbers."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.samples import H200
from tests.strategies import problems as any_problem
from torch_diode import Candidates, MMShape
from torch_diode.candidates.space import candidate_space
from torch_diode.model.features.extractor import config_arrays, joint_features, problem_features
from torch_diode.model.features.names import (
    CONFIG_NAMES,
    FEATURE_NAMES,
    JOINT_NAMES,
    PROBLEM_NAMES,
    VENDOR_NAMES,
)
from torch_diode.model.features.problem_arrays import OneProblem, ProblemArrays
from torch_diode.model.features.roofline import LAUNCH_US, roofline_us
from torch_diode.model.features.vendor import vendor_features


def test_dataset_and_single_problem_agree_to_the_last_bit(dataset, table, h200):
    for number in range(0, len(table.problem), 17):
        problem = dataset.problem(int(dataset.problems.first[number]))
        arrays = ProblemArrays.of(problem)
        assert np.array_equal(problem_features(arrays, h200)[0], table.problem[number])
        assert np.array_equal(vendor_features(arrays, h200)[0], table.vendor[number])
        assert roofline_us(arrays, h200)[0] == table.roofline[number]
        rows = np.flatnonzero(table.group == number)
        candidates = Candidates.of(dataset[int(row)].candidate for row in table.rows[rows])
        configs = config_arrays(candidates, problem, h200)
        joint = joint_features(arrays, configs, h200)
        triton = ~table.is_aten[rows]
        found = np.concatenate([configs.features, joint], axis=1)[triton]
        assert np.array_equal(found, table.config[rows][triton])


def one_by_one(p, candidates, kind, h200):
    """Joint features as their names say, one after the other, from the candidates' own fields."""
    f = {name: np.maximum(values, 1).astype(np.float32) for name, values in candidates.items()}
    m, n, k = f["block_m"], f["block_n"], f["block_k"]
    resident = config_arrays(kind[0], kind[1], h200).resident
    units, roof = np.float32(h200.units), roofline_us(p, h200)
    rate = np.float32(h200.peak_tflops(kind[1].dtype)) * np.float32(1e6) / h200.units
    bandwidth = np.float32(h200.memory_gbps * 1e3)
    tiles_m, tiles_n, steps = np.ceil(p.M / m), np.ceil(p.N / n), np.ceil(p.K / k)
    tiles = p.B * tiles_m * tiles_n
    each = np.ceil(tiles / units)
    together = np.minimum(resident, each)
    waves = tiles / (units * resident)
    loads = (m + n) * k * p.item
    at_once = units * resident
    rows = np.minimum(np.minimum(f["group_m"], tiles_m), at_once)
    columns = np.minimum(np.ceil(at_once / rows), tiles_n)
    read = np.maximum(tiles_m * tiles_n / (rows * columns), 1) * (rows * m + columns * n)
    times = [
        each * steps * (m * n * k) * (2 / np.float32(rate)),
        tiles * steps * loads / (bandwidth * np.float32(2.5)),
        p.B * (read * p.K * p.item + p.M * p.N * p.out_item) / bandwidth,
        np.ceil(each / together) * steps * np.float32(0.5) / f["num_stages"],
    ]
    low = p.low_bits[0]
    piece_a = min(low[0 if kind[1].transpose_a else 2] * p.item, 16)
    piece_b = min(low[2 if kind[1].transpose_b else 1] * p.item, 16)
    pieces = m * k * p.item / piece_a + n * k * p.item / piece_b
    total = np.float32(0)
    for time in times:
        total = total + np.square(np.square(np.minimum(time, np.float32(1e9))))
    times.append(np.sqrt(np.sqrt(total)) + np.float32(LAUNCH_US))
    return [
        *(np.log2(values) for values in (tiles_m, tiles_n, tiles, steps, each)),
        tiles / (units * each),
        np.log2(waves),
        waves / np.ceil(waves),
        p.M / (tiles_m * m),
        p.N / (tiles_n * n),
        p.K / (steps * k),
        (p.low_bits[:, 2] >= k).astype(np.float32),
        np.log2(together * f["num_warps"]),
        np.log2(together * f["num_stages"] * loads),
        np.minimum(steps / f["num_stages"], 8),
        *(np.log((time + np.float32(0.1)) / roof) for time in times),
        np.log2(pieces / (f["num_warps"] * h200.warp_size)),
    ]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("layout", ["nt", "nn", "tn"])
@pytest.mark.parametrize("sizes", [(560, 1024, 768), (1, 4096, 4096), (8192, 8198, 33), (7, 5, 3)])
def test_joint_features_are_what_they_are_computed_one_by_one(sizes, dtype, layout):
    turned = [letter == "t" for letter in layout]
    problem = MMShape("mm", *sizes, dtype=dtype, transpose_a=turned[0], transpose_b=turned[1])
    space = candidate_space(problem, H200)
    arrays = ProblemArrays.of(problem)
    found = joint_features(arrays, config_arrays(space, problem, H200), H200)
    expected = one_by_one(arrays, space.fields, (space, problem), H200)
    for name, ours, theirs in zip(JOINT_NAMES, found.T, expected, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-6), name


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


@settings(max_examples=60, deadline=None)
@given(problem=any_problem())
def test_numbers_of_one_problem_give_what_arrays_give(problem):
    """To float32 rounding: numbers are more precise. A compile asks with the one, training with
    the other."""
    one, arrays = OneProblem(problem), ProblemArrays.of(problem)
    configs = config_arrays(candidate_space(problem, H200), problem, H200)
    for numbers, expected in (
        (problem_features(one, H200), problem_features(arrays, H200)),
        (vendor_features(one, H200), vendor_features(arrays, H200)),
        (joint_features(one, configs, H200), joint_features(arrays, configs, H200)),
    ):
        assert numbers.dtype == expected.dtype == np.float32
        assert numbers.shape == expected.shape
        assert np.isfinite(numbers).all()
        assert np.allclose(numbers, expected, rtol=1e-5, atol=1e-5)
    assert roofline_us(one, H200) == pytest.approx(roofline_us(arrays, H200)[0], rel=1e-6)


def test_no_kernel_is_faster_than_its_roofline(table):
    assert (table.time_us >= table.roofline[table.group] * 0.9).mean() > 0.999
