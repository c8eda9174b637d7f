"""One name for a kernel that has several."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from torch_diode.candidates import candidate_space
from torch_diode.candidates.gpu.k_loop import FEWEST_STAGES, as_in_space
from torch_diode.hardware import known
from torch_diode.types.problem import MMShape


@given(st.sampled_from(["mm", "bmm", "addmm"]), st.integers(1, 300), st.integers(1, 5))
def test_whatever_the_space_has_it_has_under_the_name_given_here(op: str, k: int, stages: int):
    problem = MMShape(op, 64, 64, k, B=2 if op == "bmm" else 1)
    for candidate in candidate_space(problem, known("nvidia-h200")):
        assert as_in_space(candidate, problem) == candidate
        if candidate.config is not None and candidate.config.num_stages == FEWEST_STAGES:
            other = replace(candidate, config=replace(candidate.config, num_stages=stages))
            kept = as_in_space(other, problem)
            assert kept in (other, candidate)
