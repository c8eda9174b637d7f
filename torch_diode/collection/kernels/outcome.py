"""Outcomes of a candidate's kernel: compiled, or cannot run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch_diode.types.errors import DiodeError


class KernelInfeasibleError(DiodeError):
    """A candidate cannot run a problem on this chip; recorded in the dataset."""


@dataclass(frozen=True)
class CompileOutcome:
    """Result of compiling one kernel; `error` is empty on success.

    `stack_bytes` per thread: a matmul kernel uses the stack only for spilled registers.
    """

    spec: Any
    """A `KernelSpec`, or a `CppKernelSpec` on a CPU."""
    seconds: float
    shared_bytes: int = 0
    registers: int = 0
    stack_bytes: int = 0
    error: str = ""

    def fits(self, shared_memory_per_block: int) -> bool:
        """True if it compiled and fits a chip with that much shared memory."""
        return not self.error and self.shared_bytes <= shared_memory_per_block
