"""Inductor's matmul templates, rendered by Inductor for sizes known only at run time.

`TritonTemplate.generate` is called on fake input buffers with symbolic sizes: the code path of a
compile, in milliseconds, without a CUDA context, so that worker processes can still be forked.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import sympy  # type: ignore[import-untyped]
import torch
from torch._dynamo.source import ConstantSource
from torch._inductor import ir
from torch._inductor.graph import GraphLowering
from torch._inductor.kernel.bmm import bmm_template
from torch._inductor.kernel.mm import mm_template, persistent_tma_mm_template
from torch._inductor.kernel.mm_common import addmm_epilogue
from torch._inductor.select_algorithm import TritonTemplate, TritonTemplateKernel
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from torch_diode.collection.kernels.source import (
    SIZE_NAMES,
    SourceKey,
    TemplateChangedError,
    TemplateSource,
)

TEMPLATES: Mapping[str, TritonTemplate] = {
    template.uid: template for template in (mm_template, bmm_template, persistent_tma_mm_template)
}
_PERSISTENT_TMA = persistent_tma_mm_template.uid

# Hints that give Inductor 32-bit (64-bit) indices; distinct, so that no two sizes are unified.
_HINTS = {32: (1000, 1001, 1002, 1003), 64: (50000, 50001, 50002, 50003)}

# Any valid config renders the same text: these become parameters of the kernel.
_CONFIG: Mapping[str, Any] = {
    "BLOCK_M": 64,
    "BLOCK_N": 64,
    "BLOCK_K": 32,
    "GROUP_M": 8,
    "ALLOW_TF32": False,
    "NUM_SMS": 1,
    "num_stages": 2,
    "num_warps": 4,
}


@functools.cache
def template_source(key: SourceKey) -> TemplateSource:
    """The kernel text for `key`, cached per layout, dtype and op."""
    template = TEMPLATES.get(key.template)
    if template is None:
        raise TemplateChangedError(
            f"template: got {key.template!r}; expected one of {', '.join(TEMPLATES)}; "
            "use --method feedback for other templates"
        )
    return TemplateSource.from_rendered(key, render(template, key))


def render(
    template: TritonTemplate, key: SourceKey, sizes: tuple[int, int, int, int] | None = None
) -> str:
    """The module text Inductor renders; with `sizes` (M, N, K, B), that of its static kernel."""
    shape_env = ShapeEnv()
    graph = GraphLowering(torch.fx.symbolic_trace(torch.nn.Identity()), shape_env=shape_env)
    dims = tuple(map(sympy.Integer, sizes)) if sizes else _symbols(shape_env, key)
    kernel_type = _kernel_type(dict(zip(dims, SIZE_NAMES, strict=True)))
    with (
        V.set_graph_handler(graph),
        patch.object(template, "kernel_type", kernel_type),
        # Some releases query the device, which would create a CUDA context here.
        patch.object(torch.cuda, "is_tf32_supported", lambda: True),
    ):
        nodes = _input_nodes(graph, key, dims)
        caller = template.generate(
            input_nodes=nodes, layout=_out_layout(key, dims), **_options(template, key)
        )
    return Path(caller.bmreq.module_path).read_text()


def _symbols(shape_env: ShapeEnv, key: SourceKey) -> tuple[sympy.Expr, ...]:
    """M, N, K and the batch as symbols, except those that are 1."""
    dims = []
    for name, hint in zip(SIZE_NAMES, _HINTS[key.index_bits], strict=True):
        if name[-1] in key.ones:
            dims.append(sympy.Integer(1))
        else:
            origin = ConstantSource(name)
            dims.append(shape_env.create_symbol(hint, origin, dynamic_dim=DimDynamic.DYNAMIC))
    return tuple(dims)


def _kernel_type(names: dict[sympy.Expr, str]) -> type[TritonTemplateKernel]:
    """A template kernel that renders a plain `@triton.jit` function, with these size names."""

    class PlainKernel(TritonTemplateKernel):
        def def_kernel(self, *argnames: str) -> Any:
            self.args.sizevars.update({s: n for s, n in names.items() if s.is_symbol})
            return super().def_kernel(*argnames)  # type: ignore[no-untyped-call]

        def jit_lines(self) -> str:
            return "@triton.jit"

        def indexing(self, *args: Any, **kwargs: Any) -> Any:
            # Off by default in Inductor, but the check would touch CUDA.
            return super().indexing(*args, **{**kwargs, "tma_compatibility_checker": None})

    return PlainKernel


def _input_nodes(
    graph: GraphLowering, key: SourceKey, dims: tuple[Any, ...]
) -> tuple[ir.StorageBox, ...]:
    m, n, k, batch = dims
    a = _strides(m, k, transposed=key.transpose_a)
    b = _strides(k, n, transposed=key.transpose_b)
    bias = {"none": None, "vector": (0, 1), "matrix": (n, 1)}[key.bias]
    operands = [("bias", (m, n), bias)] if bias else []
    operands += [("a", (m, k), a), ("b", (k, n), b)]
    nodes = []
    for name, size, stride in operands:
        step = 0 if name == "bias" and key.bias == "vector" else size[0] * size[1]
        layout = _layout(key, size, stride)
        if key.batched:
            layout = _layout(key, (batch, *size), (step, *stride))
        buffer = ir.InputBuffer(name=name, layout=layout)
        graph.graph_inputs[name] = ir.TensorBox.create(buffer)
        graph.name_to_buffer[name] = buffer
        nodes.append(ir.StorageBox(buffer))
    return tuple(nodes)


def _strides(rows: Any, columns: Any, *, transposed: bool) -> tuple[Any, Any]:
    return (1, rows) if transposed else (columns, 1)


def _layout(key: SourceKey, size: tuple[Any, ...], stride: tuple[Any, ...]) -> ir.FixedLayout:
    device = torch.device("cuda", 0)
    return ir.FixedLayout(device, getattr(torch, key.dtype), list(size), list(stride))


def _out_layout(key: SourceKey, dims: tuple[Any, ...]) -> ir.FixedLayout:
    m, n, _, batch = dims
    size: tuple[Any, ...] = (batch, m, n) if key.batched else (m, n)
    return _layout(key, size, (m * n, n, 1) if key.batched else (n, 1))


def _options(template: TritonTemplate, key: SourceKey) -> dict[str, Any]:
    """The arguments of `generate` that Inductor's template heuristics pass besides the config."""
    options: dict[str, Any] = {
        **_CONFIG,
        "EVEN_K": key.even_k,
        "USE_FAST_ACCUM": False,
        "ACC_TYPE": "tl.float32",
    }
    if template.uid == _PERSISTENT_TMA:
        options |= {"A_ROW_MAJOR": not key.transpose_a, "B_ROW_MAJOR": not key.transpose_b}
        options |= {"TMA_SIZE": 128, "TMA_EXPERIMENTAL_API": False}
    if key.bias != "none":
        epilogue = addmm_epilogue(getattr(torch, key.dtype), 1, 1)
        options |= {"prefix_args": 1, "epilogue_fn": epilogue, "epilogue_fn_hash": "addmm 1 1"}
    return options
