"""Running: a program with torch-diode registered, without a change to its code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from torch_diode.integration import registration, settings
from torch_diode.toolkit.program import check_program, run_program


def run(program: str | os.PathLike[str], arguments: Sequence[str] = ()) -> int:
    """Run a program in this process as Python would, with torch-diode registered; returns its exit
    code.

    For a module, `program` is "-m" and its name is the first argument. The environment has
    `TORCH_DIODE_AUTOLOAD=1` from then on, so that Python processes the program starts, such as
    the ranks of `torch.distributed.run`, register too. With `TORCH_DIODE=0` nothing registers.
    """
    script = Path(program)
    check_program(script, arguments)
    if not settings.switched_off():
        registration.enable()
        os.environ["TORCH_DIODE_AUTOLOAD"] = "1"
    return run_program(script, arguments)
