"""Features of the vendor library: tiles, splits and alignment follow from the problem."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.samples import H200
from tests.strategies import problems as any_problem
from torch_diode.model.features.names import SPLIT_NAMES, VENDOR_NAMES
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.vendor import split_features, vendor_features
from torch_diode.types.problem import MMShape


def named(problem):
    values = vendor_features(ProblemArrays.of(problem), H200)[0]
    return dict(zip(VENDOR_NAMES, values.tolist(), strict=True))


def test_tiles_and_their_use_follow_from_the_sizes():
    f = named(MMShape("mm", M=300, N=256, K=512))
    assert f["128x128_tiles"] == pytest.approx(np.log2(6))
    assert f["128x128_use"] == pytest.approx(6 / 132)
    assert f["128x128_fill"] == pytest.approx(300 / 384)


def test_splitting_k_helps_a_deep_problem_and_not_a_wide_one():
    deep, wide = (named(MMShape("mm", M=m, N=m, K=k)) for m, k in ((128, 65536), (8192, 256)))
    assert deep["128x128_split_16"] < deep["128x128_time"]
    assert wide["128x128_split_16"] > wide["128x128_time"]


def test_a_split_is_a_batch_of_shallower_problems():
    problem = ProblemArrays.of(MMShape("mm", M=64, N=64, K=8192))
    found = split_features(problem, np.array([2, 8], np.float32), H200)
    parts = ProblemArrays.of(MMShape("bmm", B=8, M=64, N=64, K=1024))
    tiles = [VENDOR_NAMES.index(name) for name in ("64x64_tiles", "64x64_use", "c_aligned_16")]
    assert np.array_equal(found[1, tiles], vendor_features(parts, H200)[0, tiles])
    assert found[1, SPLIT_NAMES.index("log2_splits")] == 3
    assert found[1, SPLIT_NAMES.index("log2_part_K")] == 10


@settings(max_examples=40, deadline=None)
@given(problem=any_problem())
def test_any_problem_has_finite_features_of_every_name(problem):
    arrays = ProblemArrays.of(problem)
    vendor = vendor_features(arrays, H200)
    splits = split_features(arrays, np.array([2, 3, 64], np.float32), H200)
    assert vendor.shape == (1, len(VENDOR_NAMES))
    assert splits.shape == (3, len(SPLIT_NAMES))
    assert np.isfinite(vendor).all()
    assert np.isfinite(splits).all()
