from __future__ import annotations

import pytest

from torch_diode.collection.timer import summarise


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
