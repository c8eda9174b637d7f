import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_diode.collection.shape_sampling import LogNormal, LogUniform, ShapeSource
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.errors import InvalidValueError

REAL = Path(__file__).parents[2] / "diode_datasets" / "shapes" / "real_models.json"


def test_the_same_seed_draws_the_same_problems_and_another_seed_others():
    source = ShapeSource(LogNormal())
    assert list(source.draw(20, 1)) == list(source.draw(20, 1))
    assert set(source.draw(20, 1)) != set(source.draw(20, 2))


def test_sizes_follow_their_distribution():
    problems = list(ShapeSource(LogNormal(), high=2**31 - 1, most_bytes=2**62).draw(4000, 0))
    logs = [math.log(problem.N) for problem in problems]
    mean = sum(logs) / len(logs)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in logs) / len(logs))
    assert mean == pytest.approx(5.9139, abs=0.1)
    assert deviation == pytest.approx(1.6697, abs=0.1)


def test_rounded_sizes_are_multiples_as_often_as_real_ones():
    source = ShapeSource(LogNormal(rounded=True), high=2**31 - 1, most_bytes=2**62)
    problems = list(source.draw(4000, 0))
    for name, mean in (("M", 6.5725), ("N", 5.9139), ("K", 6.2049)):
        sizes = [getattr(problem, name) for problem in problems]
        assert sum(map(math.log, sizes)) / len(sizes) == pytest.approx(mean, abs=0.15)
    real = read_shapes(REAL).problems
    for name in "MNK":
        sizes = [getattr(p, name) for p in real]
        drawn = [getattr(p, name) for p in problems if getattr(p, name) >= 512]
        for step in (2, 8, 64):
            share = sum(size % step == 0 for size in sizes) / len(sizes)
            found = sum(size % step == 0 for size in drawn) / len(drawn)
            assert found == pytest.approx(share, abs=0.1)


@given(st.integers(1, 64), st.integers(256, 4096), st.sampled_from([1, 8, 16]), st.integers(0, 99))
def test_problems_are_distinct_and_within_the_limits(low, high, multiple, seed):
    source = ShapeSource(LogUniform(low, high), low=low, high=high, multiple=multiple)
    problems = list(source.draw(10, seed))
    assert len(set(problems)) == 10
    for problem in problems:
        for size in (problem.M, problem.N, problem.K):
            assert low <= size <= high
            assert size % multiple == 0


@given(
    low=st.integers(1, 300),
    span=st.integers(0, 300),
    multiple=st.sampled_from([0, 1, 3, 8, 64]),
    even=st.booleans(),
    log_normal=st.booleans(),
    seed=st.integers(0, 99),
)
def test_sizes_are_of_the_requested_kind_or_refused(low, span, multiple, even, log_normal, seed):
    def fits(size):
        kind = size % multiple == 0 if multiple else size & (size - 1) == 0
        return kind and not (even and size % 2)

    high = low + span
    law = LogNormal(rounded=True) if log_normal else LogUniform(low, high)
    if not any(map(fits, range(low, high + 1))):
        with pytest.raises(InvalidValueError, match=f"got sizes from {low} to {high}; expected a"):
            ShapeSource(law, low=low, high=high, multiple=multiple, even=even)
        return
    source = ShapeSource(law, low=low, high=high, multiple=multiple, even=even)
    drawn = itertools.islice(source.draw(5, seed), 1)
    for size in (size for p in drawn for size in (p.M, p.N, p.K)):
        assert low <= size <= high
        assert fits(size)


def test_more_problems_than_the_limits_allow_is_a_clear_error():
    source = ShapeSource(LogUniform(16, 17), low=16, high=17)
    with pytest.raises(InvalidValueError, match="8 distinct problems"):
        list(source.draw(9, 0))
