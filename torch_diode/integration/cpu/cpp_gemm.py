"""Inductor's C++ GEMM template with a given micro-kernel, as a choice for a constant weight.

Inductor's own classes emit the code, pack the weight and fuse what follows; only the register
blocking of the micro-kernel is decided here, where Inductor has a fixed rule.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any
from unittest import mock

import torch._inductor.config as inductor_config
import torch._inductor.lowering  # noqa: F401  the template cannot be imported before it
from torch._inductor import cpp_builder, cpu_vec_isa, ir
from torch._inductor.codegen import cpp_gemm_template
from torch._inductor.codegen.cpp_gemm_template import CppGemmTemplate
from torch._inductor.codegen.cpp_micro_gemm import CppMicroGemmFP32Vec
from torch._inductor.codegen.cpp_utils import GemmBlocking
from torch._inductor.exc import InvalidCxxCompiler

from torch_diode.candidates.cpu.cpp_gemm import vector_set
from torch_diode.types.candidate import CPP_GEMM, CppGEMMConfig
from torch_diode.types.hardware import Hardware

_ISAS = {"avx512f": cpu_vec_isa.VecAVX512, "avx2": cpu_vec_isa.VecAVX2}


def why_unavailable(hardware: Hardware) -> str:
    """The reason the template is not to be offered; empty where it may be."""
    settings = (inductor_config.cpp.cxx, inductor_config.cpp.simdlen)
    return _why_unavailable(vector_set(hardware), str(settings))


@functools.cache
def _why_unavailable(vectors: str, settings: str) -> str:
    # Cached: looking for the compiler takes 20 ms.
    try:
        cpp_builder.get_cpp_compiler()
    except InvalidCxxCompiler:
        return "no C++ compiler"
    if vectors not in _ISAS or not isinstance(cpu_vec_isa.pick_vec_isa(), _ISAS[vectors]):
        return "torch compiles for other vectors than this CPU's"
    return ""


class CppGemmChoice:
    """The template with one micro-kernel, in the place of one of Inductor's templates."""

    def __init__(self, config: CppGEMMConfig, has_bias: bool) -> None:
        self.uid = CPP_GEMM
        self._config, self._has_bias = config, has_bias

    def choice_or_none(self, layout: Any, input_nodes: Sequence[Any], **_: Any) -> Any | None:
        """Inductor's caller of the kernel; None for operands that the template does not take."""
        a, b = input_nodes[-2:]
        if not (_is_row_major(a) and _is_constant(b)):
            return None
        choices: list[Any] = []
        template: Any = _template(self._config)
        with _micro_kernel(self._config):
            template.add_choices(choices, layout, list(input_nodes), has_bias=self._has_bias)
        return choices[0] if choices else None

    def bind(self, input_nodes: Sequence[Any], layout: Any) -> Any | None:
        """The same, in the form of Inductor's libraries."""
        return self.choice_or_none(layout, input_nodes)


def _is_row_major(a: Any) -> bool:
    a.freeze_layout()
    return bool(a.get_stride()[-1] == 1)


def _is_constant(b: Any) -> bool:
    while isinstance(b, (ir.TensorBox, ir.BaseView)):
        b = b.data
    return isinstance(b, ir.StorageBox) and b.is_module_buffer()


@functools.cache
def _template(config: CppGEMMConfig) -> type[CppGemmTemplate]:
    class WithMicroKernel(CppGemmTemplate):
        """Renders with the same micro-kernel again when the graph's code is generated."""

        def render(self, *args: Any, **kwargs: Any) -> str:
            with _micro_kernel(config):
                return str(super().render(*args, **kwargs))

    return WithMicroKernel


def _micro_kernel(config: CppGEMMConfig) -> contextlib.AbstractContextManager[Any]:
    """Have the template use this micro-kernel, whatever Inductor's rule would choose.

    Compiles hold torch's lock, so the function is not replaced under another compile.
    """
    blocking = GemmBlocking(config.block_m, config.block_n, config.block_k)
    micro_gemm: Any = CppMicroGemmFP32Vec

    def create(name: str, *_: Any, **kwargs: Any) -> Any:
        dtypes = [kwargs[f"{part}_dtype"] for part in ("input", "input2", "output")]
        compute = kwargs.get("compute_dtype") or kwargs["output_dtype"]
        return micro_gemm(name, *dtypes, compute, blocking, kwargs.get("alpha", 1))

    return mock.patch.object(cpp_gemm_template, "create_micro_gemm", create)
