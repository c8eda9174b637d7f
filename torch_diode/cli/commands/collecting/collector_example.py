"""`torch-diode collector-example`: Inductor's own timings of a few matmuls."""

from __future__ import annotations

from pathlib import Path

import typer

from torch_diode.cli.console.dataset_statistics import print_statistics
from torch_diode.cli.console.output import print_line
from torch_diode.cli.options.parameters import flag, option


def collector_example(
    context: typer.Context,
    output_dir: Path = option("Folder for the two files.", default=Path()),
    num_shapes: int = option("Matmuls to compile.", default=4, min=1, max=1000),
    overwrite: bool = flag("Replace the files if they exist."),
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
