"""`torch-diode collect-shapeset`: time kernels over the problems of a shape set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.cli.options.collecting import Dtypes, How, Operations
from torch_diode.cli.options.groups import expand_options
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types import validation
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.problem import OPS, MMShape


@expand_options
def collect_shapeset(
    context: typer.Context,
    shapeset: Annotated[Path, typer.Option(help="Shape set (JSON).")],
    how: How,
    operations: Operations = None,
    dtypes: Dtypes = None,
) -> None:
    """Time every candidate on a shape set's problems; run again after a kill, it continues.

    Example: torch-diode collect-shapeset --shapeset shapes.json --output timings.parquet
    """
    problems = shapeset_problems(shapeset, operations or [], dtypes or [])
    from torch_diode.toolkit import collect

    with collect.Collecting.of("collect-shapeset", context, how) as run:
        run.run(problems, {})


def shapeset_problems(path: Path, ops: Sequence[str], dtypes: Sequence[str]) -> list[MMShape]:
    """The problems of a shape set, of these operations and dtypes (none given: all)."""
    for op in ops:
        validation.one_of("collect", "operations", op, OPS)
    for dtype in dtypes:
        validation.one_of("collect", "dtypes", dtype, TRITON_DTYPES)
    problems = read_shapes(path).problems
    found = [p for p in problems if (p.op in ops or not ops) and (p.dtype in dtypes or not dtypes)]
    if not found:
        have = sorted({f"{p.op} {p.dtype}" for p in problems})
        raise EmptySelectionError(
            f"{path}: got no problem of these operations and dtypes; it has "
            f"{', '.join(have) or 'none'}"
        )
    return found
