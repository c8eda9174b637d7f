import math

from tests.samples import ATEN, LINEAR, SMALL
from torch_diode.collection.feedback_timings import FeedbackTimings

RELEASES = {"torch": "2.13.0", "triton": "3.9.0"}


def test_infinity_means_that_a_candidate_failed():
    timings = FeedbackTimings(RELEASES)
    timings.add("nvidia-h200", LINEAR, {ATEN: 1.0, SMALL: math.inf})
    dataset = timings.dataset({"collected": ("2026-01-01",)})
    assert [(t.status, t.time_us) for t in dataset] == [("ok", 1000.0), ("failed", None)]
    assert (dataset[0].method, dataset[0].torch, dataset[0].triton) == (
        "feedback",
        "2.13.0",
        "3.9.0",
    )
    assert dataset.provenance == {"collected": ("2026-01-01",)}


def test_a_problem_autotuned_again_replaces_the_first():
    timings = FeedbackTimings({})
    for milliseconds in (1.0, 2.0):
        timings.add("nvidia-h200", LINEAR, {ATEN: milliseconds})
    assert [t.time_us for t in timings.dataset()] == [2000.0]
