"""Ranking on request."""

from __future__ import annotations

from typing import Any

import pytest

from torch_diode.heuristics.chain import Chain
from torch_diode.heuristics.custom import heuristic
from torch_diode.integration.rank import rank
from torch_diode.types.errors import DiodeError
from torch_diode.types.problem import MMShape

PROBLEM = MMShape("mm", 128, 256, 512)


@heuristic("matmul")
def backwards(problem: Any, candidates: Any) -> Any:
    return list(candidates)[::-1]


@pytest.mark.parametrize("named", [backwards, Chain(backwards)])
def test_a_function_orders_and_names_no_times(named: Any) -> None:
    found = rank(PROBLEM, hardware="nvidia-h200", heuristic=named, top=2)
    assert [p.predicted_us for p in found] == [None, None]
    everything = rank(PROBLEM, hardware="nvidia-h200", heuristic=named)
    assert [p.candidate for p in everything[:2]] == [p.candidate for p in found]


@pytest.mark.parametrize(
    "wrong",
    [
        {"problem": None},
        {"problem": "mm:128x256x512"},
        {"heuristic": "shipped"},
        {"top": 0},
        {"top": -1},
        {"top": 2.5},
        {"candidates": ["aten"]},
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, Any]) -> None:
    given = {"problem": PROBLEM, "hardware": "nvidia-h200", **wrong}
    with pytest.raises(DiodeError, match=f"rank.{next(iter(wrong))}"):
        rank(**given)
