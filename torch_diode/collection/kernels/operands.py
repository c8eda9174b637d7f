"""Tensors of a problem, and the vendor's kernel for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import BATCHED, DTYPE_BYTES, MMShape

_ALIGNMENT = 16


@dataclass(frozen=True)
class Operands:
    """Random inputs in the problem's layout, and a tensor for the output."""

    problem: MMShape
    a: torch.Tensor
    b: torch.Tensor
    out: torch.Tensor
    bias: torch.Tensor | None

    def aten(self) -> Callable[[], torch.Tensor]:
        """The vendor's kernel, called as in Inductor's lowering."""
        a, b, out, bias = self.a, self.b, self.out, self.bias
        if self.problem.op == "mm":
            return lambda: torch.mm(a, b, out=out)
        if self.problem.op == "bmm":
            return lambda: torch.bmm(a, b, out=out)
        assert bias is not None
        if self.problem.op == "addmm":
            return lambda: torch.addmm(bias, a, b, out=out)
        return lambda: torch.baddbmm(bias, a, b, out=out)


@contextlib.contextmanager
def tf32_precision(on: bool) -> Iterator[None]:
    """Enable or disable TF32 in float32 matmuls within this context."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = on
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def bytes_needed(problem: MMShape) -> int:
    """Bytes of a problem's tensors, including a copy of the output for verification."""
    return problem.bytes_moved + problem.B * problem.M * problem.N * DTYPE_BYTES[problem.out_dtype]


RandomTensor = Callable[[torch.dtype, tuple[int, ...]], torch.Tensor]
"""Makes a tensor of random values of a dtype and a shape."""


def operands(problem: MMShape, device: torch.device, generator: torch.Generator) -> Operands:
    """Random tensors for a problem; kernels run faster on zeros than on real data."""

    def draw(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.randn(*shape, dtype=dtype, device=device, generator=generator)

    return operands_from(problem, draw)


def operands_from(problem: MMShape, random: RandomTensor) -> Operands:
    """A problem's tensors with values from this source."""
    if problem.out_dtype != problem.dtype:
        raise InvalidValueError(
            f"operands: got {problem.dtype} to {problem.out_dtype}; expected one dtype throughout"
        )
    dtype = getattr(torch, problem.dtype)
    batch = (problem.B,) if problem.op in BATCHED else ()

    def values(*shape: int) -> torch.Tensor:
        return random(dtype, shape)

    def matrix(rows: int, columns: int, transposed: bool) -> torch.Tensor:
        if transposed:
            return values(*batch, columns, rows).mT
        return values(*batch, rows, columns)

    bias = None
    if problem.bias == "vector":
        bias = values(problem.N)
    elif problem.bias == "matrix":
        bias = values(*batch, problem.M, problem.N)
    a = matrix(problem.M, problem.K, problem.transpose_a)
    b = matrix(problem.K, problem.N, problem.transpose_b)
    out = a.new_empty(*batch, problem.M, problem.N)
    return Operands(problem, a, b, out, bias)


def check_tensor(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], transposed: bool, dtype: torch.dtype
) -> None:
    """Raise unless a tensor is packed, aligned, and of the shape and dtype of the kernel."""
    packed = tensor.mT if transposed else tensor
    if tuple(tensor.shape) != shape or tensor.dtype != dtype or not packed.is_contiguous():
        form = "the transpose of a contiguous tensor" if transposed else "a contiguous tensor"
        raise InvalidValueError(
            f"{name}: got shape {tuple(tensor.shape)}, strides {tensor.stride()}, {tensor.dtype}; "
            f"expected {form}, {shape}, {dtype}"
        )
    if tensor.data_ptr() % _ALIGNMENT:
        raise InvalidValueError(
            f"{name}: got an address not on {_ALIGNMENT} bytes; expected an aligned one; clone it"
        )
