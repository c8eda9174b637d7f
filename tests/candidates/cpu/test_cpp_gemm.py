import pytest

from tests.candidates.cpu.test_libraries import ARM, AVX2, AVX512
from torch_diode.candidates.cpu.cpp_gemm import MOST_ROWS, cpp_configs
from torch_diode.candidates.space import candidate_space
from torch_diode.types.problem import MMShape

FEW = MMShape("addmm", 4, 3072, 768, dtype="float32", transpose_b=True)


@pytest.mark.parametrize(("hardware", "vector"), [(AVX2, 8), (AVX512, 16)])
def test_micro_kernels_are_as_wide_as_vectors_and_fit_the_registers(hardware, vector):
    registers = 2 * vector  # both instruction sets happen to have twice as many
    configs = cpp_configs(FEW, hardware)
    assert 1 <= len(configs) <= 6
    for config in configs:
        vectors = config.block_n // vector
        assert config.block_n == vectors * vector
        assert config.block_m * vectors + vectors + 1 <= registers


def test_the_space_has_a_candidate_for_each_micro_kernel():
    space = candidate_space(FEW, AVX512)
    found = tuple(c.config for c in space if c.template == "cpp::gemm")
    assert found == cpp_configs(FEW, AVX512)


@pytest.mark.parametrize(
    "key",
    [
        f"mm:{MOST_ROWS + 1}x768x768:float32:nt",
        "mm:4x768x768:float32:tn",
        "mm:4x768x768:bfloat16:nt",
        "bmm:2x4x768x768:float32:nt",
        "addmm:4x768x768:float32:nt:bias=matrix",
    ],
)
def test_it_is_for_few_rows_of_float32_in_order(key):
    assert cpp_configs(MMShape.from_key(key), AVX512) == ()


def test_no_micro_kernels_are_known_for_other_vectors():
    assert cpp_configs(FEW, ARM) == ()
