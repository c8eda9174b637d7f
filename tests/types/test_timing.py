import re

import pytest
from hypothesis import given

from tests.samples import ATEN, LINEAR
from tests.strategies import timings
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.timing import Prediction, Timing


@given(timings())
def test_a_timing_has_a_time_exactly_when_it_ran(timing):
    assert (timing.status == "ok") == (timing.time_us is not None)
    assert timing == timing
    assert isinstance(hash(timing), int)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hardware": "NVIDIA H200"}, "Timing.hardware: got 'NVIDIA H200'"),
        ({"problem": "mm"}, "Timing.problem: got 'mm'; expected a MMShape"),
        ({"time_us": None}, "Timing.time_us: got None"),
        ({"time_us": float("nan")}, "Timing.time_us: got nan"),
        ({"status": "failed"}, "expected None when failed"),
        ({"status": "slow"}, "Timing.status: got 'slow'"),
        ({"spread": -0.5}, "Timing.spread: got -0.5"),
        ({"repeats": 2**15}, "Timing.repeats"),
        ({"method": "a b"}, "Timing.method: got 'a b'"),
        ({"torch": "2.13 beta"}, "Timing.torch: got '2.13 beta'"),
    ],
)
def test_a_bad_field_is_refused_by_name(change, said):
    fields = {"hardware": "nvidia-h200", "problem": LINEAR, "candidate": ATEN, "time_us": 1.0}
    with pytest.raises(InvalidValueError, match=re.escape(said)):
        Timing(**{**fields, **change})


@pytest.mark.parametrize(
    ("time", "sigma", "message"),
    [(time, None, "predicted_us") for time in (0.0, float("inf"), float("nan"), "fast")]
    + [(1.0, sigma, "sigma") for sigma in (-1.0, float("nan"), "much")],
)
def test_an_invalid_prediction_is_refused(time, sigma, message):
    assert Prediction(ATEN, None).predicted_us is None
    with pytest.raises(InvalidValueError, match=rf"Prediction\.{message}"):
        Prediction(ATEN, time, sigma)
