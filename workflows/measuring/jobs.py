"""What the worker processes of a crew may need: a context that is never left, and jobs whose
faults are their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from torch_diode.types.errors import DiodeError

Entered = TypeVar("Entered")

_life = contextlib.ExitStack()
_FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError),
    *(DiodeError, RuntimeError, TypeError, ValueError),
)
"""What a kernel's rendering, compiling or running may raise: Inductor's own errors are among these,
Triton's are not."""


@dataclass(frozen=True)
class Failed:
    """The answer to a job that raised something: what that was, in one line."""

    reason: str


def enter_for_process_lifetime(context: contextlib.AbstractContextManager[Entered]) -> Entered:
    """Enter a context for as long as this process lives."""
    return _life.enter_context(context)


def catch_job_errors(
    answer: Callable[[Any], Any], look: Callable[[], Any] | None = None
) -> Callable[[Any], Any]:
    """Answers as `answer` does, and with `Failed` where that raises: one job that fails must not
    cost the others.

    `look` is called after a fault, and what it raises passes: with `torch.cuda.synchronize` an
    error that stays with the GPU still ends the process.
    """

    faults: tuple[type[Exception], ...] = (*_FAULTS, *_triton_faults())

    def answered(job: Any) -> Any:
        try:
            return answer(job)
        except faults as fault:
            reason = one_line(fault)
        if look is not None:
            look()
        return Failed(reason)

    return answered


def _triton_faults() -> tuple[type[Exception], ...]:
    try:
        from triton.compiler.errors import CompilationError
        from triton.runtime.errors import TritonError
    except ImportError:
        return ()
    return CompilationError, TritonError


def one_line(fault: BaseException, most: int = 120) -> str:
    """A fault's type and the beginning of what it says."""
    return f"{type(fault).__name__}: {fault}".splitlines()[0][:most]
