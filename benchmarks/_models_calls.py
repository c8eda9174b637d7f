"""Calls of a model as the benchmarks time them, and the comparison of their outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from _models import Case
from torch import Tensor


def step_of(case: Case) -> Callable[[], list[Tensor]]:
    """One call: the output, or the gradients of a training step."""
    module, inputs = case.module, case.inputs

    def train() -> list[Tensor]:
        module(*inputs).backward()
        found = [p.grad for p in module.parameters() if p.grad is not None]
        for parameter in module.parameters():
            parameter.grad = None
        return found

    def infer() -> list[Tensor]:
        with torch.no_grad():
            return [module(*inputs)]

    return train if case.train else infer


def kept(values: list[Tensor]) -> list[Tensor]:
    """Copy of the outputs, safe from a CUDA graph's next replay."""
    return [value.detach().float().clone() for value in values[:8]]


def difference(got: list[Tensor], expected: list[Tensor]) -> float:
    """Largest relative difference over all outputs."""
    pairs = zip(got, expected, strict=True)
    return max(float((a - b).norm() / b.norm().clamp_min(1e-12)) for a, b in pairs)
