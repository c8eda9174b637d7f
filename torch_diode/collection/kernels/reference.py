"""Verification of kernels against ATen's result."""

from __future__ import annotations

import math

import torch

from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.timers.timer import Launch

TOLERANCE = {"bfloat16": 2e-2, "float16": 3e-3, "float32": 2e-5, "tf32": 3e-3}
"""Largest ‖out − ATen's‖ / ‖ATen's‖ of a correct kernel; with wrong arguments it is about 1."""


class Reference:
    """ATen's result for a problem's tensors."""

    def __init__(self, tensors: Operands) -> None:
        tensors.aten()()
        # Copied even from float32: `out` is overwritten by the kernels.
        self._expected = tensors.out.to(torch.float32, copy=True)
        self._scale = self._expected.norm()
        self._out = tensors.out
        self._limit = TOLERANCE[tensors.problem.precision]

    def error_of(self, launch: Launch) -> torch.Tensor:
        """Relative error of a launch's result, left on the device to avoid a synchronization; NaN
        if part of the output was not written."""
        self._out.fill_(math.nan)
        launch()
        error: torch.Tensor = (self._out.float() - self._expected).norm() / self._scale
        return error

    def allows(self, error: float) -> bool:
        """True if a result with this error counts as correct."""
        return error <= self._limit


def is_close(result: torch.Tensor, expected: torch.Tensor) -> bool:
    """True if a result counts as correct."""
    wide = expected.float()
    error = float((result.float() - wide).norm() / wide.norm().clamp_min(1e-30))
    return error <= TOLERANCE[str(expected.dtype).removeprefix("torch.")]
