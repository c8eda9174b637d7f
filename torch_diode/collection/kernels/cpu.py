"""Launches on a CPU: a library's kernel on operands of its own, as the compiled graph calls it.

Each candidate has a copy of the weight: the one that runs first must not warm it for the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.timers.timer import Launch
from torch_diode.types.candidate import (
    ATEN,
    ATEN_F32,
    MKL_PACKED,
    ONEDNN,
    ONEDNN_F32,
    ONEDNN_PACKED,
)
from torch_diode.types.problem import BATCHED

NO_MEMORY = "DefaultCPUAllocator"
"""In torch's error where a CPU's memory is not enough."""
_POOL = 1 << 22
NO_POST_OP: tuple[str, list[float], str] = ("none", [], "")
_SMALL = (4, 16, 16)
"""Sizes of the product that warms up the code of a library."""


class RandomPool:
    """Random values copied from a pool: drawing them takes longer than the products do."""

    def __init__(self, seed: int) -> None:
        self._values = torch.randn(_POOL, generator=torch.Generator().manual_seed(seed))
        self._pools: dict[torch.dtype, torch.Tensor] = {}
        self._next = 0

    def __call__(self, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        """A tensor of its own; two of them share no run of values unless they are large."""
        pool = self._pools.setdefault(dtype, self._values.to(dtype))
        out = torch.empty(shape, dtype=dtype)
        flat, done = out.view(-1), 0
        while done < flat.numel():
            part = pool[self._next : self._next + flat.numel() - done]
            flat[done : done + part.numel()] = part
            done += part.numel()
            self._next = (self._next + part.numel()) % _POOL
        return out


def library_launch(template: str, tensors: Operands) -> Launch:
    """A library's call that computes the product and returns it."""
    return library_call(template, tensors.problem.op, tensors.a, _copy(tensors.b), tensors.bias)


def library_call(
    template: str, op: str, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None
) -> Launch:
    """A library's call on these operands; a packed weight is packed now."""
    return _CALLS[template](a, b, bias, op)


def warm_up(
    templates: Sequence[str], tensors: Operands, kernels: Sequence[Launch] = ()
) -> Callable[[], None]:
    """A function that runs the code of libraries, on a small product, and of kernels, and reads the
    activations."""
    m, n, k = _SMALL
    a, b = (torch.ones(size, dtype=tensors.a.dtype) for size in ((m, k), (k, n)))
    calls = [_CALLS[name](a, b, None, "mm") for name in templates if name in _CALLS]
    activations = tensors.a.mT if tensors.problem.transpose_a else tensors.a

    def run() -> None:
        for call in (*calls, *kernels):
            call()
        activations.sum()

    return run


def _copy(matrix: torch.Tensor) -> torch.Tensor:
    """A copy in memory of its own, with the same strides."""
    return matrix.clone(memory_format=torch.preserve_format)


def _aten(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, op: str) -> Launch:
    function: Callable[..., Any] = getattr(torch, op)
    arguments = (a, b) if bias is None else (bias, a, b)
    return functools.partial(function, *arguments)


def _onednn(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, op: str) -> Launch:
    linear = torch.ops.mkldnn._linear_pointwise.default
    if op not in BATCHED:
        return functools.partial(linear, a, b.t(), bias, *NO_POST_OP)

    def run() -> torch.Tensor:
        products = [linear(x, y.t(), None, *NO_POST_OP) for x, y in zip(a, b, strict=True)]
        return torch.stack(products) if bias is None else torch.stack(products) + bias

    return run


def _aten_f32(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, op: str) -> Launch:
    return _converted(_aten, a, b, bias, op)


def _onednn_f32(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, op: str) -> Launch:
    return _converted(_onednn, a, b, bias, op)


def _converted(
    call: Callable[..., Launch],
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None,
    op: str,
) -> Launch:
    def run() -> torch.Tensor:
        wide = None if bias is None else bias.float()
        result: torch.Tensor = call(a.float(), b.float(), wide, op)()
        return result.to(a.dtype)

    return run


def _onednn_packed(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, _: str) -> Launch:
    linear = torch.ops.mkldnn._linear_pointwise.default
    weight = torch.ops.mkldnn._reorder_linear_weight(b.t().contiguous(), len(a))
    return functools.partial(linear, a, weight, bias, *NO_POST_OP)


def _mkl_packed(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, _: str) -> Launch:
    weight = b.t().contiguous()
    packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, len(a))
    return functools.partial(torch.ops.mkl._mkl_linear.default, a, packed, weight, bias, len(a))


_CALLS = {
    ATEN: _aten,
    ONEDNN: _onednn,
    ATEN_F32: _aten_f32,
    ONEDNN_F32: _onednn_f32,
    ONEDNN_PACKED: _onednn_packed,
    MKL_PACKED: _mkl_packed,
}
