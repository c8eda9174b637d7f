"""Libraries as choices for a matmul on a CPU: oneDNN on operands as they lie in memory, and
oneDNN and ATen on operands converted to float32.

The generated code calls torch's own operator, `mkldnn::_linear_pointwise`: a graph loaded from a
cache runs in any process, with or without torch-diode, and so does the C++ wrapper. The operator
takes its weight as N x K, so it is handed a transposed view of B, which costs nothing. A batch is a
call per matrix. Conversions are pointwise operations of the graph, which Inductor fuses with
others.
"""

from __future__ import annotations

import functools
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import ir, lowering
from torch._inductor.select_algorithm import ExternKernelChoice
from torch._inductor.virtualized import V

from torch_diode.collection.kernels.cpu import NO_POST_OP, library_call
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import ATEN_F32, CONVERTING, ONEDNN
from torch_diode.types.problem import BATCHED, OPS

KERNELS = {f"torch_diode_{name}_{op}": name for name in (ONEDNN, *CONVERTING) for op in OPS}
"""Names of the choices made here, and the libraries they call."""
_PLAIN_PRECISIONS = ("none", "ieee")


def why_unavailable() -> str:
    """The reason oneDNN is not to be chosen under torch's settings now; empty where it may be.

    Each of them asks for certain numbers, which another library does not give bit by bit.
    """
    if not torch.backends.mkldnn.is_available() or not torch._C._get_mkldnn_enabled():
        return "oneDNN is switched off"
    if torch.are_deterministic_algorithms_enabled():
        return "deterministic algorithms are asked for"
    if _float32_precision() not in _PLAIN_PRECISIONS:
        return f"float32 matmuls are to run in {_float32_precision()}"
    if torch_compat.compiles_ahead():
        return "AOTInductor compiles for another process"
    return ""


@functools.cache
def library_choice(template: str, op: str) -> ExternKernelChoice:
    """Inductor's choice object for a library and an operation."""
    multiply = _aten if template == ATEN_F32 else _slices if op in BATCHED else _linear

    def run(*operands: torch.Tensor) -> torch.Tensor:
        *bias, a, b = operands
        result: torch.Tensor = library_call(template, op, a, b, *bias)()
        return result

    def lower(*operands: Any) -> Any:
        *bias, a, b = map(_boxed, operands)
        if template == ONEDNN:
            return _unboxed(multiply(op, *bias, a, b))
        wide = [lowering.to_dtype(operand, torch.float32) for operand in (*bias, a, b)]
        return _unboxed(lowering.to_dtype(multiply(op, *wide), a.get_dtype()))

    return ExternKernelChoice(
        run, name=f"torch_diode_{template}_{op}", has_out_variant=False, kernel_creator=lower
    )


def library_choices(inputs: Any, op: str) -> dict[str, ExternKernelChoice]:
    """The libraries that can be called for this matmul, where torch's settings allow any."""
    if not takes(inputs, op):
        return {}
    batch = inputs.mat1mat2()[0].get_size()[0]
    sliced = torch_compat.takes_slices() and isinstance(batch, (int, sympy.Integer))
    names = (ONEDNN, *CONVERTING) if op not in BATCHED or sliced else (ATEN_F32,)
    return {name: library_choice(name, op) for name in names}


def takes(inputs: Any, op: str) -> bool:
    """Whether a library computes exactly this matmul: alpha and beta of 1, a bias per column."""
    if any(value != 1 for value in inputs._scalars.values()):
        return False
    if op != "addmm":
        return True
    bias, _, mat2 = inputs.nodes()
    columns = mat2.get_size()[-1]
    sizes = bias.get_size()
    if len(sizes) != 1:
        return False
    same = sizes[0] == columns
    return bool(same or V.graph.sizevars.statically_known_equals(sizes[0], columns))


def _linear(_: str, *operands: Any) -> Any:
    """A product of two matrices, with a bias vector."""
    *bias, a, b = operands
    operator = torch.ops.mkldnn._linear_pointwise.default
    weight = ir.PermuteView.create(b, [1, 0])
    return ir.FallbackKernel.create(operator, a, weight, bias[0] if bias else None, *NO_POST_OP)


def _slices(_: str, *operands: Any) -> Any:
    """A product per matrix of a batch, put together again, and a bias."""
    *bias, a, b = operands
    slices = [
        [lowering.select(matrices, 0, i) for matrices in (a, b)]
        for i in map(sympy.Integer, range(int(a.get_size()[0])))
    ]
    products = [lowering.unsqueeze(_boxed(_linear("mm", *pair)), 0) for pair in slices]
    product = lowering.lowerings[torch.ops.aten.cat.default](products, 0)
    return lowering.lowerings[torch.ops.aten.add.Tensor](product, *bias) if bias else product


def _aten(op: str, *operands: Any) -> Any:
    return ir.FallbackKernel.create(getattr(torch.ops.aten, op).default, *operands)


def _boxed(node: Any) -> Any:
    """A node of Inductor's graph as lowerings take it."""
    if isinstance(node, (ir.TensorBox, ir.StorageBox, ir.BaseView)):
        return node if isinstance(node, ir.TensorBox) else ir.TensorBox(node)
    return ir.TensorBox.create(node)


def _unboxed(node: Any) -> Any:
    """The node as Inductor's choice puts it into a box itself."""
    return node.data.data if isinstance(node, ir.TensorBox) else node  # type: ignore[attr-defined]


def _float32_precision() -> str:
    """The precision oneDNN runs float32 matmuls in: for matmuls, else for all of oneDNN, else
    for all of torch (2.9 on)."""
    mkldnn = torch.backends.mkldnn
    for owner in (getattr(mkldnn, "matmul", None), mkldnn, torch.backends):
        precision = getattr(owner, "fp32_precision", "none")
        if precision != "none":
            return str(precision)
    return "none"
