"""One name for a kernel that has several."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from torch_diode.candidates import candidate_space
from torch_diode.candidates.space import FEWEST_STAGES, canonical_candidate, position_of
from torch_diode.hardware import known
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape


@given(st.sampled_from(["mm", "bmm", "addmm"]), st.integers(1, 300), st.integers(1, 5))
def test_whatever_the_space_has_it_has_under_the_name_given_here(op: str, k: int, stages: int):
    problem = MMShape(op, 64, 64, k, B=2 if op == "bmm" else 1)
    for candidate in candidate_space(problem, known("nvidia-h200")):
        assert canonical_candidate(candidate, problem) == candidate
        if candidate.config is not None and candidate.config.num_stages == FEWEST_STAGES:
            other = replace(candidate, config=replace(candidate.config, num_stages=stages))
            kept = canonical_candidate(other, problem)
            assert kept in (other, candidate)


def test_a_kernel_without_a_loop_is_found_by_any_number_of_stages() -> None:
    problem = MMShape("mm", 512, 512, 64)
    space = candidate_space(problem, known("nvidia-h200"))

    def position(stages: int, template: str = "triton::mm", block_k: int = 64) -> int | None:
        config = TritonGEMMConfig(64, 64, block_k, 8, stages, 4)
        return position_of(Candidate(template, config), space, problem)

    positions = {position(stages) for stages in range(1, 6)}
    assert len(positions) == 1
    assert None not in positions
    assert position(3, block_k=32) != position(4, block_k=32)
    tma = "triton::mm_persistent_tma"
    assert position(3, template=tma) != position(4, template=tma)
