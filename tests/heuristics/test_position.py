from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.position import position_of
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape

LONG, SHORT = MMShape("mm", 16, 512, 16384), MMShape("mm", 512, 512, 64)
SPACE, SHORT_SPACE = (candidate_space(p, known("nvidia-h200")) for p in (LONG, SHORT))
NOT_ON_OFFER = Candidate("triton::mm", TritonGEMMConfig(512, 512, 512, 8, 3, 4))


@given(st.integers(0, len(SPACE) - 1))
def test_a_candidate_is_found_where_it_stands(row: int) -> None:
    assert position_of(SPACE[row], SPACE, LONG) == row


def test_a_candidate_of_another_template_or_config_is_not_found() -> None:
    assert position_of(NOT_ON_OFFER, SPACE, LONG) is None
    assert position_of(Candidate("decompose_k", split_k=3), SPACE, LONG) is None


def test_without_a_loop_a_kernel_is_found_by_any_number_of_stages() -> None:
    def named(stages: int, template: str = "triton::mm", block_k: int = 64) -> Candidate:
        return Candidate(template, TritonGEMMConfig(64, 64, block_k, 8, stages, 4))

    positions = {position_of(named(s), SHORT_SPACE, SHORT) for s in range(1, 6)}
    assert len(positions) == 1
    assert None not in positions
    for other in ({"block_k": 32}, {"template": "triton::mm_persistent_tma"}):
        found = [position_of(named(s, **other), SHORT_SPACE, SHORT) for s in (3, 4)]
        assert found[0] != found[1]
