"""`torch-diode model-example`: a small model from timings to predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from torch_diode.cli.commands.training.train import print_training
from torch_diode.cli.console.output import print_line, print_table
from torch_diode.cli.options import training as options
from torch_diode.cli.options.parameters import build, flag, option, taking
from torch_diode.toolkit.training.options import TrainOptions

_SHOWN = 5


@taking(options.TRAINING)
def model_example(
    context: typer.Context,
    dataset: Path | None = option(
        "Dataset; without one, this CPU's libraries are timed on 24 problems."
    ),
    model: Path = option(options.MODEL_TO_WRITE, default=Path("example_model.pt")),
    overwrite: bool = flag("Replace the files if they exist."),
    **given: Any,
) -> None:
    """Train a small model and predict with it, on a CPU in a minute.

    Example: torch-diode model-example --num-epochs 6
    """
    from torch_diode.cli.console.progress import ConsoleProgress
    from torch_diode.toolkit import examples

    shared, epochs = context.obj, given["num_epochs"] or 6
    with ConsoleProgress() as progress:
        result = examples.model_example(
            dataset,
            model,
            build(TrainOptions, {**given, "num_epochs": epochs}),
            device=shared.device,
            seed=shared.seed or 0,
            overwrite=overwrite,
            on_training=print_training,
            progress=progress,
        )
    print_line(f"What the model predicts for {result.problem}:")
    rows = [(str(p.candidate), f"{p.predicted_us:.2f}") for p in result.predictions[:_SHOWN]]
    print_table(("candidate", "µs"), rows, right="lr")
