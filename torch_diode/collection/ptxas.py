"""Which assembler Triton uses.

Torch brings a ptxas and Triton another release of it. Inductor's compiling processes use torch's,
the process that starts them does not. The code of the two is not the same, and a kernel one of them
made is not found in Triton's cache by a process with the other.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

_SWITCH = "TRITON_PTXAS_PATH"


def use_inductors_ptxas(folder: Path | None = None) -> None:
    """Have Triton assemble as Inductor's compiling processes do: with the ptxas that torch brings,
    where it brings one.

    For this process and those it starts, before the first kernel; what the user has set stays.
    """
    brought = _brought(folder)
    if brought is not None:
        os.environ.setdefault(_SWITCH, str(brought))


@contextlib.contextmanager
def inductors_ptxas(folder: Path | None = None) -> Iterator[None]:
    """Have Triton assemble so in here, and find what those processes compiled; then as before."""
    brought = _brought(folder)
    if brought is None or _SWITCH in os.environ:
        yield
        return
    os.environ[_SWITCH] = str(brought)
    _forget_release()
    try:
        yield
    finally:
        os.environ.pop(_SWITCH, None)
        _forget_release()


def _brought(folder: Path | None) -> Path | None:
    found = (folder or Path(torch.__file__).parent) / "bin" / "ptxas"
    return found if found.is_file() and os.access(found, os.X_OK) else None


def _forget_release() -> None:
    """Triton asks the assembler for its release once, and goes by the answer from then on."""
    compiler = sys.modules.get("triton.backends.nvidia.compiler")
    for each in list(vars(compiler).values()) if compiler else ():
        forget = getattr(each, "cache_clear", None)
        if callable(forget):
            forget()
