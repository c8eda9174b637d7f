"""oneDNN as a choice for a matmul on a CPU, called on operands as they lie in memory.

The generated code calls torch's own operator, `mkldnn::_linear_pointwise`: a graph loaded from a
cache runs in any process, with or without torch-diode, and so does the C++ wrapper. The operator
takes its weight as N x K, so it is handed a transposed view of B, which costs nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.select_algorithm import ExternKernelChoice
from torch._inductor.virtualized import V

from torch_diode.integration.hooks import torch_compat
from torch_diode.types.problem import BATCHED

_NO_POST_OP: tuple[str, list[float], str] = ("none", [], "")
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


def onednn_choice(op: str) -> ExternKernelChoice | None:
    """Inductor's choice object for an operation; None for one oneDNN's linear does not run."""
    return None if op in BATCHED else _choice(op)


def takes(inputs: Any, op: str) -> bool:
    """Whether the operator computes exactly this matmul: alpha and beta of 1, a bias per column."""
    if any(value != 1 for value in inputs._scalars.values()):
        return False
    if op != "addmm":
        return True
    bias, _, mat2 = inputs.nodes()
    columns = mat2.get_size()[-1]
    sizes = bias.get_size()
    return len(sizes) == 1 and bool(V.graph.sizevars.statically_known_equals(sizes[0], columns))


@functools.cache
def _choice(op: str) -> ExternKernelChoice:
    eager, lowered = (_linear, _lower_linear) if op == "mm" else (_linear_bias, _lower_linear_bias)
    return ExternKernelChoice(
        eager, name=f"torch_diode_onednn_{op}", has_out_variant=False, kernel_creator=lowered
    )


def _linear(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(a, b.t(), None, *_NO_POST_OP)
    return result


def _linear_bias(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(a, b.t(), bias, *_NO_POST_OP)
    return result


def _lower_linear(a: Any, b: Any) -> Any:
    return _lower_linear_bias(None, a, b)


def _lower_linear_bias(bias: Any, a: Any, b: Any) -> Any:
    weight = ir.PermuteView.create(b, [1, 0])
    operator = torch.ops.mkldnn._linear_pointwise.default
    return ir.FallbackKernel.create(operator, a, weight, bias, *_NO_POST_OP)


def _float32_precision() -> str:
    """The precision oneDNN runs float32 matmuls in: for matmuls, else for all of oneDNN, else
    for all of torch (2.9 on)."""
    mkldnn = torch.backends.mkldnn
    for owner in (getattr(mkldnn, "matmul", None), mkldnn, torch.backends):
        precision = getattr(owner, "fp32_precision", "none")
        if precision != "none":
            return str(precision)
    return "none"
