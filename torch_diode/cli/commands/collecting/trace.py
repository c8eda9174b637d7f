"""`torch-diode trace`: run a program and keep the matmul problems it compiles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.commands.data.convert import refuse_existing
from torch_diode.cli.console.output import print_line
from torch_diode.files.shape_sets import write_shapes
from torch_diode.toolkit.program import check_program, run_program
from torch_diode.types.errors import EmptySelectionError, FileFaultError


def trace(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Shape set to write (.json).")],
    script: Annotated[Path, typer.Argument(help="Python program to run.")],
    overwrite: Annotated[bool, typer.Option(help="Replace the output if it exists.")] = False,
) -> None:
    """Run a program, and write the matmul problems of its compiled graphs, with counts.

    What follows the program's name are its own arguments.

    Example: torch-diode trace --output shapes.json train.py --steps 1
    """
    from torch_diode.integration.capture.trace import tracing

    if output.suffix != ".json":
        raise FileFaultError(f"{output}: got the ending {output.suffix!r}; expected .json")
    refuse_existing(output, overwrite)
    check_program(script)
    with tracing() as found:
        code = run_program(script, context.args)
    if code and not found.counts:
        raise typer.Exit(code)
    if not found.counts:
        raise EmptySelectionError(
            f"{script}: got no matmul in what it compiled; expected at least one; does it call "
            "torch.compile?"
        )
    write_shapes(found.shapes(script.name), output)
    print_line(f"{output}: {len(found.counts):,} problems, met {found.counts.total():,} times")
    if found.left_out:
        print_line(f"{found.left_out.total():,} matmuls left out: {', '.join(found.left_out)}")
    if code:
        raise typer.Exit(code)
