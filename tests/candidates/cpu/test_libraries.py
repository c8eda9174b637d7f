from __future__ import annotations

import pytest

from torch_diode.candidates.space import candidate_space
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

AVX2 = Hardware("amd-zen3", "cpu", "x86_64", instruction_sets=("avx", "avx2", "fma"))
AVX512 = Hardware("amd-zen5", "cpu", "x86_64", instruction_sets=("avx2", "avx512f", "avx512_bf16"))


@pytest.mark.parametrize(
    ("hardware", "problem", "templates"),
    [
        (AVX2, MMShape("mm", 8, 16, 32, dtype="float32"), ("aten", "onednn")),
        (AVX2, MMShape("addmm", 8, 16, 32, dtype="float32", transpose_a=True), ("aten", "onednn")),
        (AVX2, MMShape("addmm", 8, 16, 32, dtype="float32", bias="matrix"), ("aten",)),
        (AVX2, MMShape("bmm", 8, 16, 32, B=4, dtype="float32"), ("aten",)),
        (AVX2, MMShape("mm", 8, 16, 32, dtype="bfloat16"), ("aten",)),
        (AVX512, MMShape("mm", 8, 16, 32, dtype="bfloat16"), ("aten", "onednn")),
        (AVX512, MMShape("mm", 8, 16, 32, dtype="float16"), ("aten",)),
        (AVX512, MMShape("mm", 8, 16, 32, dtype="bfloat16", out_dtype="float32"), ("aten",)),
    ],
)
def test_a_cpu_chooses_among_the_libraries_that_run_the_problem(
    hardware: Hardware, problem: MMShape, templates: tuple[str, ...]
) -> None:
    assert candidate_space(problem, hardware).templates == templates


def test_only_libraries_on_offer_are_candidates() -> None:
    problem = MMShape("mm", 8, 16, 32, dtype="float32")
    assert candidate_space(problem, AVX2, ("aten", "triton::mm")).templates == ("aten",)
