"""What a plain compile runs, without one."""

from __future__ import annotations

import pytest

from torch_diode.hardware import known
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.integration.rank import plain_ranking, single_choice
from torch_diode.model.registry import load_registered
from torch_diode.types.problem import MMShape

H200 = known("nvidia-h200")


@pytest.mark.parametrize("op", ["mm", "bmm"])
def test_it_chooses_among_what_no_config_has_to_turn_on(op: str) -> None:
    model = ModelHeuristic(load_registered("matmul", H200))
    found = plain_ranking(MMShape(op, 64, 64, 64), model, H200)
    assert found is not None
    space, ranking = found
    assert set(space.templates) <= {"aten", f"triton::{op}"}
    assert single_choice(space, ranking) in space


def test_where_the_heuristic_abstains_there_is_nothing_to_say() -> None:
    model = ModelHeuristic(load_registered("matmul", H200))
    assert plain_ranking(MMShape("mm", 64, 64, 64, dtype="float64"), model, H200) is None
