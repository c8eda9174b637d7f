"""`torch-diode collect`: time kernels over generated shapes."""

from __future__ import annotations

import typer

from torch_diode.cli.options.collecting import How, Shapes
from torch_diode.cli.options.groups import expand_options


@expand_options
def collect(context: typer.Context, how: How, shapes: Shapes) -> None:
    """Time every candidate on drawn shapes; run again after a kill or Ctrl-C, it continues.

    Example: torch-diode --seed 42 collect --output timings.parquet --num-shapes 100 --log-normal
    """
    collect_drawn(context, how, shapes)


def collect_drawn(
    context: typer.Context, how: How, shapes: Shapes, *, going_on: bool = False
) -> None:
    """Collect drawn shapes; with `going_on` an output that is finished will do."""
    wanted = shapes.drawing(context.obj.device)
    from torch_diode.toolkit import collect

    with collect.Collecting.of("collect", context, how, going_on) as run:
        run.run(wanted.problems(run.hardware, run.seed), wanted.options())
