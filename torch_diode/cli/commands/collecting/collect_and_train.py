"""`torch-diode collect-and-train`: collect, train, collect a validation set, validate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.commands.collecting.collect import collect_drawn
from torch_diode.cli.commands.collecting.create_validation import COMMAND, validation_drawn
from torch_diode.cli.commands.training.train import train
from torch_diode.cli.commands.training.validate_model import validate_model
from torch_diode.cli.console.output import print_line
from torch_diode.cli.options.collecting import How, Shapes
from torch_diode.cli.options.groups import expand_options
from torch_diode.cli.options.training import Learning, Model
from torch_diode.files.file_errors import existing, naming_file
from torch_diode.types.errors import FileFaultError, MissingPartError


@expand_options
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

    The same command again goes on after a kill: what was collected with the same options is not
    collected again; once the model is there, add --skip-training. With --skip-collection a
    validation set that is there is used as it is.

    Example: torch-diode --seed 42 collect-and-train --output timings.parquet --model model.pt
    --num-shapes 500 --log-normal
    """
    output = how.output
    apart = validation or output.with_name(f"{output.stem}_validation{output.suffix}")
    aside = replace(how, output=apart)
    collects_apart = not skip_validation and not (skip_collection and apart.exists())
    if skip_collection and (collects_apart or not skip_training):
        existing(output)
    if skip_training:
        _check_trained(model, used=not skip_validation)
    else:
        _check_trainable(context, model, how, learning, collects=not skip_collection)
        _check_card_apart(context, model, output, apart)
    if collects_apart:
        _check_apart(context, aside, output, alone=skip_collection)
    if not skip_collection:
        print_line(f"1 of 4: collecting {output}")
        collect_drawn(context, how, shapes, going_on=True)
    if not skip_training:
        print_line(f"2 of 4: training {model}")
        train(
            context=context, model=model, dataset=output, overwrite=how.overwrite, **vars(learning)
        )
    if skip_validation:
        return
    if collects_apart:
        print_line(f"3 of 4: collecting {apart}")
        few = replace(shapes, num_shapes=validation_shapes)
        validation_drawn(context, aside, few, [output], going_on=True)
    else:
        print_line(f"3 of 4: {apart} is there")
    print_line(f"4 of 4: validating {model} on {apart}")
    validate_model(apart, str(model), top_n_worst=top_n_worst)


def _check_trained(model: Path, used: bool) -> None:
    """Refuse a model that is not there; and where it is to be used, one that cannot be."""
    existing(model)
    if used:
        from torch_diode.model.checkpoint import load_weights

        load_weights(model)


def _check_trainable(
    context: typer.Context, model: Path, how: How, learning: Learning, collects: bool
) -> None:
    """Refuse what training would refuse, while nothing is collected yet."""
    if collects and context.obj.device == "cpu":
        raise MissingPartError(
            "collect-and-train: got --device cpu, where ATen alone is timed; expected a GPU, since "
            "a model learns to choose; give --skip-training --skip-validation to collect alone"
        )
    with naming_file(model):
        there = model.exists()
    if there and not how.overwrite:
        raise FileFaultError(
            f"{model}: exists already; choose another name, or give --overwrite to train it again "
            "or --skip-training to validate it"
        )
    from torch_diode.collection.store.output import check_writable
    from torch_diode.toolkit.training.train import Data, Training

    check_writable(model, how.overwrite, "--model")
    Training(Data(how.output), model, learning, device=context.obj.device).check()


def _check_card_apart(context: typer.Context, model: Path, *outputs: Path) -> None:
    """Refuse a model whose card would take the place of what is collected."""
    from torch_diode.collection.store.output import output_file

    cards = {model.with_suffix(ending).absolute() for ending in (".json", ".md")}
    for output in outputs:
        file = output_file(output, context.obj.form)[0]
        if file.absolute() in cards:
            raise FileFaultError(
                f"{file}: got the name of the model's card; choose another name for it or --model"
            )


def _check_apart(context: typer.Context, aside: How, output: Path, alone: bool) -> None:
    """Refuse a validation set that could not be written; and where nothing else is collected, a
    device that cannot be timed on. Whether one that is there will do, its own step tells."""
    from torch_diode.collection.store.output import check_writable, output_file
    from torch_diode.toolkit.collect import Collecting

    form = context.obj.form
    file = output_file(aside.output, form)[0]
    training = output if alone else output_file(output, form)[0]
    if file.absolute() == training.absolute():
        raise FileFaultError(
            f"{file}: got the same file to train on and to validate on; choose another --validation"
        )
    # One that is there can be this command's own only if the timings are there too.
    check_writable(file, aside.overwrite or training.exists(), "--validation")
    if alone and aside.ray is None:
        with Collecting.of(COMMAND, context, aside, going_on=True):
            pass
