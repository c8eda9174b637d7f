"""`torch-diode collect-and-train`: collect, train, collect a validation set, validate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from torch_diode.cli.commands.training.train import print_training
from torch_diode.cli.commands.training.validate_model import TOP_N_WORST, print_validation
from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.cli.options import training
from torch_diode.cli.options.default_paths import MODEL, VALIDATION, new_dataset, written_dataset
from torch_diode.cli.options.parameters import build, flag, option, taking
from torch_diode.toolkit.collecting.collect import CollectionResult
from torch_diode.toolkit.training.options import TrainOptions

if TYPE_CHECKING:
    from torch_diode.toolkit.collecting.collect_and_train import StepResult


@taking(options.RUN, options.DRAWING, training.TRAINING)
def collect_and_train(
    context: typer.Context,
    model: Path = option(training.MODEL_TO_WRITE, default=MODEL),
    output: Path | None = options.OUTPUT_DATASET,
    skip_collection: bool = flag("Train on an --output that is there.", "--skip-collection"),
    skip_training: bool = flag("Validate a --model that is there.", "--skip-training"),
    skip_validation: bool = flag(
        "Neither collect a validation set nor use it.", "--skip-validation"
    ),
    validation: Path | None = option(
        "Validation set; beside the output if not given.", "--validation", "--validation-dataset"
    ),
    validation_shapes: int = option("Problems to validate on.", default=25, min=1),
    top_n_worst: int = TOP_N_WORST,
    **given: Any,
) -> None:
    """Time kernels, train a model on them, and validate it.

    The same command again goes on after a kill: what was collected with the same options is not
    collected again; once the model is there, add --skip-training. With --skip-collection a
    validation set that is there is used as it is.

    Example: torch-diode --seed 42 collect-and-train --output timings.parquet --model model.pt
    --num-shapes 500 --log-normal
    """
    settings, sampling = options.collect_options(context, given), options.shape_sampling(given)
    learning = build(TrainOptions, given)
    from torch_diode.toolkit.collecting.collect_and_train import collect_and_train as run
    from torch_diode.toolkit.training.train import TrainingResult

    def show(result: StepResult) -> None:
        if isinstance(result, CollectionResult):
            print_collection(result)
        elif isinstance(result, TrainingResult):
            print_training(result)
        else:
            print_validation(result, top_n_worst)

    path_of = written_dataset if skip_collection else new_dataset
    if output is None:
        validation = path_of(context, validation, VALIDATION)
    dataset = path_of(context, output)
    with ConsoleProgress() as progress:
        results = run(
            dataset,
            model,
            sampling,
            settings,
            learning,
            validation=validation,
            validation_shapes=validation_shapes,
            skip_collection=skip_collection,
            skip_training=skip_training,
            skip_validation=skip_validation,
            on_step=show,
            progress=progress,
        )
    if results.training is not None and not results.training.is_written:
        raise typer.Exit(1)
