from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.position import position_of
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape

SPACE = candidate_space(MMShape("mm", 16, 512, 16384), known("nvidia-h200"))
NOT_ON_OFFER = Candidate("triton::mm", TritonGEMMConfig(512, 512, 512, 8, 3, 4))


@given(st.integers(0, len(SPACE) - 1))
def test_a_candidate_is_found_where_it_stands(row: int) -> None:
    assert position_of(SPACE[row], SPACE) == row


def test_a_candidate_of_another_template_or_config_is_not_found() -> None:
    assert position_of(NOT_ON_OFFER, SPACE) is None
    assert position_of(Candidate("decompose_k", split_k=3), SPACE) is None
