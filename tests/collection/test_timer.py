from __future__ import annotations

import pytest
import torch

from torch_diode.collection.timer import Timer, summarise
from torch_diode.types.errors import DiodeError


def test_the_first_look_counts_only_where_there_is_no_other() -> None:
    assert summarise([9.0]).time_us == 9.0
    assert summarise([100.0, 5.0, 5.1, 5.2]).time_us == 5.1
    assert summarise([100.0, 5.0, 5.1, 5.2]).repeats == 3


def test_one_stalled_sample_does_not_move_the_median() -> None:
    calm = summarise([5.0, 5.0, 5.1, 5.0, 5.1, 5.0])
    stalled = summarise([5.0, 5.0, 5.1, 28.0, 5.1, 5.0])
    assert stalled.time_us == pytest.approx(calm.time_us, rel=0.03)


def test_spread_is_half_the_interquartile_range_over_the_median() -> None:
    assert summarise([0.0, 10.0, 11.0, 12.0, 13.0, 14.0]).spread == pytest.approx(1 / 12, abs=1e-3)
    assert summarise([5.0]).spread == 0.0


class LateTimer(Timer):
    """A timer whose CPU is late until it has had so long a head start."""

    def __post_init__(self) -> None:
        self.enough = 10**9

    def _sample(self, launches, cycles):
        return [5.0] * len(launches), [cycles >= self.enough] * len(launches)


def test_a_late_sample_is_taken_again_with_a_longer_head_start() -> None:
    timer = LateTimer(torch.device("cpu"), 0)
    timer.enough = 4_000_000
    samples: list[list[float]] = [[], []]
    timer._batch([print, print], [0, 1], samples)
    assert samples == [[5.0], [5.0]]
    assert timer.stalled == 6


def test_a_cpu_that_never_keeps_ahead_is_an_error_and_not_a_hang() -> None:
    with pytest.raises(DiodeError, match="keep ahead"):
        LateTimer(torch.device("cpu"), 0)._batch([print], [0], [[]])
