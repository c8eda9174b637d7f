"""`torch-diode trace`: run a program and write the matmul problems it compiles."""

from __future__ import annotations

from pathlib import Path

import typer

from torch_diode.cli.console.output import print_line
from torch_diode.cli.options.parameters import OVERWRITE, PROGRAM, required


def trace(
    context: typer.Context,
    output: Path = required("Shape set to write (.json).", "--output", "-o"),
    script: Path = PROGRAM,
    overwrite: bool = OVERWRITE,
) -> None:
    """Run a program and write the matmuls of its compiled graphs.

    What follows the program's name are its own arguments.

    Example: torch-diode trace --output shapes.json train.py --steps 1
    """
    from torch_diode.toolkit.collecting.trace import trace as run

    result = run(script, context.args, output=output, overwrite=overwrite)
    if len(result.shapes):
        print_line(f"{output}: {len(result.shapes):,} problems, met {result.calls:,} times")
    if len(result.shapes) and result.left_out:
        print_line(f"{result.left_out.total():,} matmuls left out: {', '.join(result.left_out)}")
    if result.exit_code:
        raise typer.Exit(result.exit_code)
