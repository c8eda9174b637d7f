"""ATen's result for a problem, and how far from it a kernel's may be: a fast wrong kernel is no
candidate."""

from __future__ import annotations

import math

import torch

from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.timers.cuda import Launch

TOLERANCE = {"bfloat16": 2e-2, "float16": 3e-3, "float32": 2e-5, "tf32": 3e-3}
"""Largest ‖out − ATen's‖ / ‖ATen's‖ of a right kernel; one given the wrong arguments is off by
about 1."""


class Reference:
    """What ATen makes of a problem's tensors."""

    def __init__(self, tensors: Operands) -> None:
        tensors.aten()()
        # A copy in float32, too: it would be the very tensor that is written next.
        self._expected = tensors.out.to(torch.float32, copy=True)
        self._scale = self._expected.norm()
        self._out = tensors.out
        self._limit = TOLERANCE[tensors.problem.precision]

    def error_of(self, launch: Launch) -> torch.Tensor:
        """How far off a launch's result is: a number on the device, so that nobody waits for it;
        NaN where some of the result was not written."""
        self._out.fill_(math.nan)
        launch()
        error: torch.Tensor = (self._out.float() - self._expected).norm() / self._scale
        return error

    def allows(self, error: float) -> bool:
        """Whether a result so far off is right."""
        return error <= self._limit
