"""`torch-diode run`: run a program with torch-diode registered."""

from __future__ import annotations

from pathlib import Path

import typer

from torch_diode.cli.options.parameters import PROGRAM


def run(context: typer.Context, program: Path = PROGRAM) -> None:
    """Run a program with torch-diode on, its code unchanged.

    What follows the program's name are its own arguments, and its exit code is this command's.
    Python processes that it starts register, too.

    Example: torch-diode run train.py --steps 1

    Example: torch-diode run -m torch.distributed.run --nproc-per-node 2 train.py
    """
    from torch_diode.toolkit.run import run as run_registered

    raise typer.Exit(run_registered(program, context.args))
