"""Which assembler Triton uses."""

from __future__ import annotations

import os
from pathlib import Path

import torch

_SWITCH = "TRITON_PTXAS_PATH"


def use_inductors_ptxas(folder: Path | None = None) -> None:
    """Have Triton assemble with the ptxas that torch brings, where it brings one: Inductor's own
    compiling processes do so.

    Triton brings another release. Its code is not the same, and a kernel one of them made is not
    found in Triton's cache by a process with the other. For this process and those it starts,
    before the first kernel; what the user has set stays.
    """
    brought = (folder or Path(torch.__file__).parent) / "bin" / "ptxas"
    if brought.is_file() and os.access(brought, os.X_OK):
        os.environ.setdefault(_SWITCH, str(brought))
