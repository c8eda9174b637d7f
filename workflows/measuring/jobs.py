"""Helpers of worker processes: contexts for the lifetime of a process, and jobs whose errors are
results."""

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
"""Errors of rendering, compiling or running a kernel, Inductor's included, Triton's not."""


@dataclass(frozen=True)
class Failed:
    """Result of a job that raised: the error in one line."""

    reason: str


def enter_for_process_lifetime(context: contextlib.AbstractContextManager[Entered]) -> Entered:
    """Enter a context for the lifetime of this process."""
    return _life.enter_context(context)


def catch_job_errors(
    answer: Callable[[Any], Any], look: Callable[[], Any] | None = None
) -> Callable[[Any], Any]:
    """Wrap `answer` to return `Failed` where it raises, so that one failed job does not stop the
    others.

    `look` is called after an error, and what it raises propagates: with `torch.cuda.synchronize` a
    sticky GPU error still ends the process.
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
    """Type and first line of an error."""
    return f"{type(fault).__name__}: {fault}".splitlines()[0][:most]
