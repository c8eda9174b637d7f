"""Verification of kernels before timing: each runs once and is compared with ATen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.kernels.outcome import KernelInfeasibleError
from torch_diode.collection.kernels.reference import Reference
from torch_diode.collection.timers.timer import Launch
from torch_diode.types.errors import DiodeError
from workflows.measuring.jobs import one_line


@dataclass(frozen=True)
class VerifiedKernels:
    """Launch function of a correct kernel; otherwise a timing status and the reason."""

    launch: Launch | None
    status: str = "ok"
    reason: str = ""


def verify_kernels(
    tensors: Operands, makers: Sequence[Callable[[], Launch]]
) -> list[VerifiedKernels]:
    """Create each kernel, run it once and compare it with ATen's result."""
    reference = Reference(tensors)
    return [_try(tensors, make, reference) for make in makers]


def _try(tensors: Operands, make: Callable[[], Launch], reference: Reference) -> VerifiedKernels:
    from triton.runtime.errors import TritonError

    try:
        launch = make()
        error = float(reference.error_of(launch))
    except (DiodeError, TritonError, RuntimeError) as fault:
        _finish(tensors)  # a sticky GPU error is raised again here
        return VerifiedKernels(None, _status(fault), one_line(fault))
    if reference.allows(error):
        return VerifiedKernels(launch)
    return VerifiedKernels(None, "wrong", f"wrong: off by {error:.2g}")


def _finish(tensors: Operands) -> None:
    if tensors.out.is_cuda:
        torch.cuda.synchronize(tensors.out.device)


def _status(fault: Exception) -> str:
    # Inductor raises its own error for this.
    short = isinstance(fault, KernelInfeasibleError) or "out of resource" in str(fault)
    return "out_of_resources" if short else "failed"
