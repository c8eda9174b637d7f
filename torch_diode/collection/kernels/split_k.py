"""Split-K matmul as in Inductor: a batched product of the parts, then their sum.

Inductor compiles the pair per problem. Here the product is the same library call, and the sum is
Inductor's reduction, compiled once with dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch

from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.timers.timer import Launch


def split_launch(tensors: Operands, parts: int) -> Launch:
    """Function that computes the product with K split into `parts`, into the problem's output."""
    m, k = tensors.a.shape
    n = tensors.b.shape[1]
    a = tensors.a.reshape(m, parts, k // parts).permute(1, 0, 2)
    b = tensors.b.reshape(parts, k // parts, n)
    products = torch.empty(parts, m, n, dtype=torch.float32, device=a.device)
    add, out, flat = _sum(), tensors.out.view(-1), products.view(parts, m * n)

    def launch() -> None:
        if a.dtype == torch.float32:
            torch.bmm(a, b, out=products)
        else:
            torch.bmm(a, b, torch.float32, out=products)
        add(flat, out)

    return launch


@lru_cache(maxsize=1)
def _sum() -> Callable[[torch.Tensor, torch.Tensor], None]:
    def add(products: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(products.sum(0))

    return torch.compile(add, dynamic=True)
