import pytest
from torch._inductor import config as inductor_config

from torch_diode.hardware import detect
from torch_diode.integration.cpu.cpp_gemm import why_unavailable


def test_the_template_needs_a_compiler():
    with inductor_config.patch({"cpp.cxx": ("no-such-compiler",)}):
        assert why_unavailable(detect("cpu")) == "no C++ compiler"


def test_the_template_needs_this_cpus_vectors():
    if "avx512f" not in detect("cpu").instruction_sets:
        pytest.skip("a CPU with one length of vectors")
    with inductor_config.patch({"cpp.simdlen": 256}):
        assert "other vectors" in why_unavailable(detect("cpu"))
