from __future__ import annotations

import pytest

from torch_diode.collection.sampling_options import Drawing, default_dtypes
from torch_diode.collection.shape_sampling import sizes_of
from torch_diode.hardware import known
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.hardware import Hardware

H200 = known("nvidia-h200")
TINY = Hardware("tiny", "cuda", memory_bytes=1 << 20)


def test_the_log_normal_law_is_the_fitted_one_unless_told():
    assert Drawing(1, log_normal=True).source(0).law.m == (6.5725, 2.5562)
    assert Drawing(1, log_normal=True, m=(1.0, 0.0)).problems(H200, 0)[0].M == 3


def test_shapes_are_spread_over_the_magnitudes_otherwise():
    sizes = [problem.M for problem in Drawing(200).problems(H200, 0)]
    assert min(sizes) < 64 < 2048 < max(sizes)


def test_sizes_keep_within_the_limits():
    for log_normal in (False, True):
        drawn = Drawing(50, log_normal=log_normal, min_size=100, max_size=200).problems(H200, 0)
        assert all(100 <= size <= 200 for p in drawn for size in (p.M, p.N, p.K))


def test_shapes_fit_the_memory():
    assert all(p.bytes_moved <= 1 << 18 for p in Drawing(20, log_normal=True).problems(TINY, 0))


def test_what_is_taken_is_not_drawn_and_the_others_stay():
    everything = Drawing(20).problems(H200, 7)
    taken = {sizes_of(problem) for problem in everything[::2]}
    assert Drawing(10).problems(H200, 7, taken) == everything[1::2]


def test_more_than_there_are_is_refused():
    few = Drawing(2, ("mm",), min_size=8, max_size=8)
    with pytest.raises(EmptySelectionError, match="got 0 problems that no other dataset has"):
        few.problems(H200, 0, {("mm", 1, 8, 8, 8)})


@pytest.mark.parametrize(
    "given", [{"operations": ("mn",)}, {"dtypes": ("int8",)}, {"layouts": ("n",)}, {"min_size": 0}]
)
def test_a_wrong_word_is_refused_when_it_is_made(given):
    with pytest.raises(InvalidValueError):
        Drawing(1, **given)


def test_the_cpu_draws_what_every_cpu_runs():
    assert default_dtypes("cpu") == ("float32",)
    assert default_dtypes(None) == default_dtypes("cuda:1") == ("bfloat16",)
