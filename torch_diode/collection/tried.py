"""Kernels run once before they are timed: what cannot run, or is wrong, is no candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from torch_diode.collection.kernels import KernelInfeasibleError
from torch_diode.collection.operands import Operands
from torch_diode.collection.timer import Launch
from torch_diode.collection.worker import one_line
from torch_diode.types.errors import DiodeError

WRONG = 3e-2
"""Of ‖out − ATen's‖ / ‖ATen's‖: a kernel given the wrong arguments is off by about 1."""


@dataclass(frozen=True)
class Tried:
    """What launches a kernel, where it may be timed; else a timing's status, and why in words."""

    launch: Launch | None
    status: str = "ok"
    reason: str = ""


def tried(tensors: Operands, makers: Sequence[Callable[[], Launch]]) -> list[Tried]:
    """Each kernel made, run once and compared with ATen's result."""
    tensors.aten()()
    # A copy in float32, too: it would be the very tensor that is written next.
    reference = tensors.out.to(torch.float32, copy=True)
    return [_try(tensors, make, reference) for make in makers]


def _try(tensors: Operands, make: Callable[[], Launch], reference: torch.Tensor) -> Tried:
    from triton.runtime.errors import TritonError

    tensors.out.fill_(math.nan)
    try:
        launch = make()
        launch()
        _finish(tensors)
    except (DiodeError, TritonError, RuntimeError) as fault:
        _finish(tensors)  # what broke the GPU raises here again, and passes
        return Tried(None, _status(fault), one_line(fault))
    error = float((tensors.out.float() - reference).norm() / reference.norm())
    if error <= WRONG:
        return Tried(launch)
    return Tried(None, "wrong", f"wrong: off by {error:.2g}")


def _finish(tensors: Operands) -> None:
    if tensors.out.is_cuda:
        torch.cuda.synchronize(tensors.out.device)


def _status(fault: Exception) -> str:
    # Inductor says so in an error of its own.
    short = isinstance(fault, KernelInfeasibleError) or "out of resource" in str(fault)
    return "out_of_resources" if short else "failed"
