"""`torch-diode collector-example`: Inductor's own timings of a few matmuls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.dataset_statistics import print_statistics
from torch_diode.cli.console.output import print_line
from torch_diode.cli.options.parameters import option


def collector_example(
    context: typer.Context,
    output_dir: Annotated[Path, option("Folder for the two files.")] = Path(),
    num_shapes: Annotated[int, option("Matmuls to compile.", min=1, max=1000)] = 4,
    overwrite: Annotated[bool, option("Replace the files if they exist.")] = False,
) -> None:
    """Keep the times of a few autotuned matmuls; runs on a CPU too.

    Example: torch-diode --device cpu collector-example --num-shapes 2
    """
    from torch_diode.toolkit import examples
    from torch_diode.toolkit.datasets import stats

    shared = context.obj
    result = examples.collector_example(
        output_dir,
        num_shapes=num_shapes,
        device=shared.device,
        form=shared.form or "json",
        seed=shared.seed or 0,
        overwrite=overwrite,
    )
    print_statistics(stats(result.dataset))
    print_line(f"{result.dataset_file}: the timings; {result.table_file}: the fastest, as a table")
