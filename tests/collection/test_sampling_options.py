import pytest

from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.collection.shape_sampling import sizes_of
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.hardware import Hardware

SMALL_GPU = Hardware("tiny", "cuda", memory_bytes=1 << 20)


def test_the_log_normal_law_is_the_fitted_one_by_default(h200):
    assert ShapeSampling(1, log_normal=True).source().law.m == (6.5725, 2.5562)
    assert ShapeSampling(1, log_normal=True, m=(1.0, 0.0)).problems(h200, 0)[0].M == 3


def test_problems_fit_the_memory():
    drawn = ShapeSampling(20, log_normal=True).problems(SMALL_GPU, 0)
    assert all(problem.bytes_moved <= 1 << 18 for problem in drawn)


def test_taken_sizes_are_not_drawn_and_the_others_stay(h200):
    everything = ShapeSampling(20).problems(h200, 7)
    taken = {sizes_of(problem) for problem in everything[::2]}
    assert ShapeSampling(10).problems(h200, 7, taken) == everything[1::2]


def test_more_problems_than_there_are_is_refused(h200):
    few = ShapeSampling(2, ("mm",), min_size=8, max_size=8)
    with pytest.raises(EmptySelectionError, match="got 0 problems that no other dataset has"):
        few.problems(h200, 0, {("mm", 1, 8, 8, 8)})


@pytest.mark.parametrize(
    "given",
    [
        {"operations": ("mn",)},
        {"dtypes": ("int8",)},
        {"layouts": ("n",)},
        {"min_size": 0},
        {"num_shapes": 0},
        {"n": (1.0, -1.0)},
        {"k": (float("nan"), 1.0)},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_wrong_option_is_refused_on_construction(given):
    with pytest.raises(InvalidValueError):
        ShapeSampling(**given)


def test_the_default_dtype_is_one_that_the_hardware_runs(h200):
    assert ShapeSampling().with_dtypes(Hardware("some", "cpu")).dtypes == ("float32",)
    assert ShapeSampling().with_dtypes(h200).dtypes == ("bfloat16",)
    assert ShapeSampling(dtypes=("float16",)).with_dtypes(h200).dtypes == ("float16",)


def test_settings_are_named_like_the_command_line_options(h200):
    """They are stored with an unfinished collection, which a later release continues."""
    settings = ShapeSampling(3, min_size=8).with_dtypes(h200).settings()
    assert settings == {
        "num-shapes": 3,
        "operations": ("mm", "addmm", "bmm"),
        "dtypes": ("bfloat16",),
        "layouts": ("nn",),
        "log-normal": False,
        "min-size": 8,
        "max-size": None,
        "m": (6.5725, 2.5562),
        "n": (5.9139, 1.6697),
        "k": (6.2049, 2.1647),
        "power-of-two": False,
        "square": False,
        "even": False,
        "tf32": False,
    }
