from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import H200
from torch_diode.candidates.gpu.eligibility import (
    arch_number,
    has_tma,
    k_splits,
    offered_templates,
    tma_aligned,
)
from torch_diode.types.problem import MMShape


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (MMShape("mm", 512, 512, 512), ("aten", "triton::mm", "triton::mm_persistent_tma")),
        (MMShape("addmm", 512, 512, 512), ("aten", "triton::mm", "triton::mm_persistent_tma")),
        (MMShape("mm", 512, 511, 512), ("aten", "triton::mm")),
        (MMShape("bmm", 512, 512, 512, B=4), ("aten", "triton::bmm")),
        (MMShape("baddbmm", 512, 512, 512, B=4), ("aten", "triton::bmm")),
        (MMShape("mm", 512, 512, 512, dtype="float64"), ("aten",)),
        (MMShape("mm", 512, 512, 512, dtype="int8"), ("aten",)),
        (MMShape("mm", 512, 512, 512, out_dtype="float32"), ("aten",)),
    ],
    ids=str,
)
def test_a_problem_is_offered_the_templates_that_can_run_it(problem, expected):
    assert offered_templates(problem, H200) == expected


def test_tma_is_for_hopper_and_later_but_not_where_blackwell_has_its_own_template():
    offered = {arch: has_tma(replace(H200, arch=arch)) for arch in ("sm_80", "sm_90", "sm_100")}
    assert offered == {"sm_80": False, "sm_90": True, "sm_100": False}


@pytest.mark.parametrize(
    ("arch", "number"), [("sm_90", 90), ("sm_90a", 90), ("sm_120", 120), ("gfx942", 0), ("", 0)]
)
def test_an_architecture_is_read_from_its_name(arch, number):
    assert arch_number(arch) == number


def test_tma_alignment_looks_at_rows_as_they_lie_in_memory():
    assert tma_aligned(MMShape("mm", 7, 8, 16))
    assert not tma_aligned(MMShape("mm", 7, 8, 16, transpose_a=True))
    assert not tma_aligned(MMShape("mm", 8, 7, 16))


def test_a_single_row_is_not_for_tma_since_inductor_takes_it_for_a_column():
    assert not tma_aligned(MMShape("mm", 1, 64, 64))
    assert tma_aligned(MMShape("mm", 2, 64, 64))
    assert tma_aligned(MMShape("mm", 8, 7, 16, transpose_b=True))
    assert tma_aligned(MMShape("mm", 8, 4, 4, dtype="float32"))


@given(
    m=st.integers(1, 64),
    n=st.integers(1, 64),
    k=st.integers(1, 1 << 20) | st.integers(1, 1 << 11).map(lambda x: x * 512),
)
def test_splits_divide_k_into_parts_worth_a_kernel(m, n, k):
    splits = k_splits(MMShape("mm", m, n, k))
    assert len(set(splits)) == len(splits)
    for split in splits:
        assert k % split == 0
        assert k // split >= 128
        assert 2 <= split <= k // max(m, n)


def test_k_is_split_only_where_it_is_long_against_m_and_n():
    assert k_splits(MMShape("mm", 16, 16, 512)) == (2, 4)
    assert k_splits(MMShape("mm", 16, 17, 512)) == ()
    assert k_splits(MMShape("addmm", 16, 16, 512)) == ()
