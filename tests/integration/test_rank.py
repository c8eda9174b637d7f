"""Ranking without a compile."""

from typing import Any

import pytest

from torch_diode import Chain, DiodeError, MMShape, ModelHeuristic, heuristic
from torch_diode.integration.rank import plain_ranking, rank, single_choice
from torch_diode.model.registry import load_registered

PROBLEM = MMShape("mm", 128, 256, 512)


@heuristic("matmul")
def backwards(problem: Any, candidates: Any) -> Any:
    return list(candidates)[::-1]


@pytest.mark.parametrize("named", [backwards, Chain(backwards)])
def test_a_function_gives_an_order_without_times(named):
    best = rank(PROBLEM, hardware="nvidia-h200", heuristic=named, top=2)
    assert [p.predicted_us for p in best] == [None, None]
    everything = rank(PROBLEM, hardware="nvidia-h200", heuristic=named)
    assert [p.candidate for p in everything[:2]] == [p.candidate for p in best]


@pytest.mark.parametrize(
    "wrong",
    [
        {"problem": None},
        {"problem": "mm:128x256x512"},
        {"heuristic": "shipped"},
        {"top": 0},
        {"top": 2.5},
        {"candidates": ["aten"]},
    ],
)
def test_a_wrong_argument_is_named(wrong):
    given = {"problem": PROBLEM, "hardware": "nvidia-h200", **wrong}
    with pytest.raises(DiodeError, match=f"rank.{next(iter(wrong))}"):
        rank(**given)


def test_a_plain_compile_chooses_among_the_templates_that_need_no_config(h200):
    model = ModelHeuristic(load_registered("matmul", h200))
    for op in ("mm", "bmm"):
        ranked = plain_ranking(MMShape(op, 64, 64, 64), model, h200)
        space, ranking = ranked
        assert set(space.templates) <= {"aten", f"triton::{op}"}
        assert single_choice(space, ranking) in space
    assert plain_ranking(MMShape("mm", 64, 64, 64, dtype="float64"), model, h200) is None
