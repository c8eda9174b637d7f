from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.ordering import rank_by_time
from torch_diode.types.candidate import CONFIG_FIELDS, Candidate, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape

SPACE = candidate_space(MMShape("mm", 64, 64, 64), known("nvidia-h200"))


@given(
    times=st.lists(st.integers(1, 5), min_size=40, max_size=40),
    permutation=st.permutations(range(40)),
)
def test_the_order_does_not_follow_the_input_even_where_times_are_equal(
    times: list[int], permutation: list[int]
) -> None:
    given_space = SPACE.take(np.linspace(0, len(SPACE) - 1, 40).astype(int))
    straight = rank_by_time(np.array(times, float), given_space, "x")
    rows = np.array(permutation)
    shuffled = rank_by_time(np.array(times, float)[rows], given_space.take(rows), "x")
    assert rows[shuffled.order].tolist() == straight.order.tolist()
    assert (np.diff(straight.predicted_us[straight.order]) >= 0).all()


def test_a_time_that_is_not_a_number_is_refused() -> None:
    times = np.full(len(SPACE), 1.0)
    times[3] = np.nan
    with pytest.raises(InvalidValueError, match="model"):
        rank_by_time(times, SPACE, "model")


def test_every_field_of_a_candidate_can_settle_a_tie() -> None:
    base = TritonGEMMConfig(4096, 4096, 4096, 1024, 32, 64, 16, 64, 8)
    smaller = dict.fromkeys(("block_m", "block_n", "block_k", "num_warps"), 16)
    for field in CONFIG_FIELDS:
        other = replace(base, **{field: smaller.get(field, 1)})
        pair = [Candidate("triton::mm", base), Candidate("triton::mm", other)]
        winners = set()
        for items in (pair, pair[::-1]):
            candidates = Candidates.of(items)
            ranking = rank_by_time(np.ones(2), candidates, "x")
            winners.add(candidates[int(ranking.order[0])])
        assert len(winners) == 1, field
