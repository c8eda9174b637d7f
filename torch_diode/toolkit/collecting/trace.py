"""Tracing: the matmul problems in the graphs that a program or a function compiles."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_diode.collection.store.output import check_writable
from torch_diode.files.shape_sets import write_shapes
from torch_diode.toolkit.program import check_program, program_name, run_program
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.shapes import OperationShapeSet


@dataclass(frozen=True)
class TraceResult:
    """The problems met, with their counts."""

    shapes: OperationShapeSet
    left_out: Counter[str]
    """Reasons for which matmuls could not be described as a problem, and how often."""
    exit_code: int = 0
    """The program's."""

    @property
    def calls(self) -> int:
        """Matmuls met, those that occur several times counted each time."""
        return sum(shape.count for shape in self.shapes)


def trace(
    program: str | os.PathLike[str] | Callable[[], Any],
    arguments: Sequence[str] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> TraceResult:
    """Run a program, or call a function, and return the matmul problems of what it compiles.

    A program runs in this process as `python program arguments` would run it (for a module,
    `program` is "-m"); a function is called without arguments. With `output`, the problems are also
    written as a shape set.
    """
    file = None if output is None else Path(output)
    if file is not None:
        if file.suffix != ".json":
            raise FileFaultError(f"{file}: got the ending {file.suffix!r}; expected .json")
        check_writable(file, overwrite)
    if not callable(program):
        check_program(Path(program), arguments)
    from torch_diode.integration.capture.trace import tracing

    code = 0
    with tracing() as traced:
        if callable(program):
            name = getattr(program, "__qualname__", type(program).__name__)
            program()
        else:
            name = program_name(Path(program), arguments)
            code = run_program(Path(program), arguments)
    if not traced.counts and not code:
        raise EmptySelectionError(
            f"{name if callable(program) else program}: got no matmul in what it compiled; "
            "expected at least one; does it call torch.compile?"
        )
    shapes = traced.shapes(name)
    if file is not None and len(shapes):
        write_shapes(shapes, file, overwrite)
    return TraceResult(shapes, traced.left_out, code)
