"""`torch-diode collect-and-train`: collect, train, collect a validation set, validate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.collect import collect
from torch_diode.cli.collect_options import How, Shapes
from torch_diode.cli.create_validation import create_validation
from torch_diode.cli.option_groups import spread
from torch_diode.cli.output import say
from torch_diode.cli.train import train
from torch_diode.cli.train_options import Learning, Model
from torch_diode.cli.validate_model import validate_model
from torch_diode.files.faults import existing


@spread
def collect_and_train(
    context: typer.Context,
    model: Model,
    how: How,
    shapes: Shapes,
    learning: Learning,
    skip_collection: Annotated[
        bool, typer.Option("--skip-collection", help="Train on an --output that is there.")
    ] = False,
    skip_training: Annotated[
        bool, typer.Option("--skip-training", help="Validate a --model that is there.")
    ] = False,
    skip_validation: Annotated[
        bool, typer.Option("--skip-validation", help="Neither collect a validation set nor use it.")
    ] = False,
    validation: Annotated[
        Path | None, typer.Option(help="Validation set; beside the output if not given.")
    ] = None,
    validation_shapes: Annotated[int, typer.Option(help="Problems to validate on.", min=1)] = 25,
    top_n_worst: Annotated[int, typer.Option(help="Worst cases to list.", min=0)] = 10,
) -> None:
    """Do all of it: time kernels, train a model on them, and validate it on problems apart.

    With --skip-collection a validation set that is there is used as it is.

    Example: torch-diode --seed 42 collect-and-train --output timings.parquet --model model.pt
    --num-shapes 500 --log-normal
    """
    output = how.output
    apart = validation or output.with_name(f"{output.stem}_validation{output.suffix}")
    if skip_collection and not skip_training:
        existing(output)
    if skip_training:
        existing(model)
    if not skip_collection:
        say(f"1 of 4: collecting {output}")
        collect(context=context, **vars(how), **vars(shapes))
    if not skip_training:
        say(f"2 of 4: training {model}")
        train(
            context=context, model=model, dataset=output, overwrite=how.overwrite, **vars(learning)
        )
    if skip_validation:
        return
    if skip_collection and apart.exists():
        say(f"3 of 4: {apart} is there")
    else:
        say(f"3 of 4: collecting {apart}")
        aside = replace(how, output=apart)
        few = replace(shapes, num_shapes=validation_shapes)
        create_validation(context=context, exclude=[output], **vars(aside), **vars(few))
    say(f"4 of 4: validating {model} on {apart}")
    validate_model(apart, str(model), top_n_worst=top_n_worst)
