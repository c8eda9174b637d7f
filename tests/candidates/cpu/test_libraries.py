from dataclasses import replace

import pytest

from torch_diode import Hardware, MMShape
from torch_diode.candidates.cpu.libraries import PLAIN
from torch_diode.candidates.space import candidate_space

AVX2 = Hardware("amd-zen3", "cpu", "x86_64", instruction_sets=("avx", "avx2", "fma"))
AVX512 = Hardware("amd-zen5", "cpu", "x86_64", instruction_sets=("avx2", "avx512f", "avx512_bf16"))
ARM = Hardware("arm-neoverse-v2", "cpu", "aarch64", instruction_sets=("asimd", "bf16"))
ROWS = 4096  # more than the C++ template is ever offered for


@pytest.mark.parametrize(
    ("hardware", "problem", "templates"),
    [
        (AVX2, MMShape("mm", ROWS, 16, 32, dtype="float32"), ("onednn_packed", "mkl_packed")),
        (AVX2, MMShape("addmm", ROWS, 16, 32, dtype="float32", transpose_a=True), ()),
        (AVX512, MMShape("mm", ROWS, 16, 32, dtype="bfloat16"), ("onednn_packed",)),
        (ARM, MMShape("mm", ROWS, 16, 32, dtype="float32"), ("onednn_packed",)),
        (ARM, MMShape("mm", ROWS, 16, 32, dtype="bfloat16"), ("onednn_packed",)),
    ],
)
def test_a_constant_weight_can_be_packed_where_a_is_row_major(hardware, problem, templates):
    space = candidate_space(problem, hardware)
    assert space.templates == ("aten", "onednn", *templates)


@pytest.mark.parametrize(
    ("hardware", "problem"),
    [
        (AVX2, MMShape("addmm", 8, 16, 32, dtype="float32", bias="matrix")),
        (AVX2, MMShape("bmm", 8, 16, 32, B=4, dtype="float32")),
        (AVX2, MMShape("bmm", 512, 512, 512, B=64, dtype="float32")),
        (AVX2, MMShape("mm", 8, 16, 32, dtype="float64")),
        (AVX512, MMShape("bmm", 512, 512, 512, B=4, dtype="bfloat16")),
        (AVX512, MMShape("mm", 8, 16, 32, dtype="bfloat16", out_dtype="float32")),
        (ARM, MMShape("bmm", 8, 16, 32, B=4, dtype="float16")),
    ],
)
def test_what_no_other_library_runs_is_atens(hardware, problem):
    assert candidate_space(problem, hardware).templates == ("aten",)


def test_a_batch_of_few_large_matrices_may_be_a_call_each():
    problem = MMShape("baddbmm", 512, 512, 512, B=4, dtype="float32")
    assert candidate_space(problem, AVX2).templates == ("aten", "onednn")


@pytest.mark.parametrize(
    ("problem", "template"),
    [
        (MMShape("mm", 8, 16, 32, dtype="float16"), "onednn_f32"),
        (MMShape("addmm", 8, 16, 32, dtype="float16"), "onednn_f32"),
        (MMShape("addmm", 8, 16, 32, dtype="float16", bias="matrix"), "aten_f32"),
        (MMShape("bmm", 8, 16, 32, B=4, dtype="float16"), "aten_f32"),
    ],
)
def test_a_half_precision_without_instructions_may_be_converted(problem, template):
    assert candidate_space(problem, AVX512).templates == ("aten", template)
    other = replace(problem, dtype="bfloat16", out_dtype="bfloat16")
    assert candidate_space(other, AVX2).templates == ("aten", template)


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_a_plain_compile_has_the_libraries_that_take_any_operands(layout):
    problem = MMShape.from_key(f"addmm:8x16x32:float32:{layout}")
    space = candidate_space(problem, AVX2, (*PLAIN, "triton::mm"))
    assert space.templates == ("aten", "onednn")
