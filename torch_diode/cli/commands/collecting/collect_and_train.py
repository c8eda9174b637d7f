"""`torch-diode collect-and-train`: collect, train, collect a validation set, validate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torch_diode.cli.commands.training.train import print_training
from torch_diode.cli.commands.training.validate_model import print_validation
from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.cli.options import training
from torch_diode.cli.options.parameters import build
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.toolkit.collecting.collect import CollectionResult
from torch_diode.toolkit.training.options import TrainOptions

if TYPE_CHECKING:
    from torch_diode.toolkit.collecting.collect_and_train import StepResult


def collect_and_train(
    context: typer.Context,
    model: training.Model,
    output: options.Output,
    search_space: options.SearchSpace = "EXHAUSTIVE",
    search_mode: options.SearchMode = "max-autotune",
    method: options.Method = "sweep",
    chunk_size: options.ChunkSize = None,
    processes: options.Processes = 0,
    workers: options.Workers = 0,
    threads: options.Threads = None,
    libraries_only: options.Libraries = False,
    ray: options.Ray = None,
    overwrite: options.Overwrite = False,
    num_shapes: options.NumShapes = ShapeSampling.num_shapes,
    log_normal: options.LogNormal = False,
    log_normal_m_mean: options.Mean = ShapeSampling.m[0],
    log_normal_m_std: options.Deviation = ShapeSampling.m[1],
    log_normal_n_mean: options.Mean = ShapeSampling.n[0],
    log_normal_n_std: options.Deviation = ShapeSampling.n[1],
    log_normal_k_mean: options.Mean = ShapeSampling.k[0],
    log_normal_k_std: options.Deviation = ShapeSampling.k[1],
    min_size: options.MinSize = None,
    max_size: options.MaxSize = None,
    power_of_two: options.PowerOfTwo = False,
    no_rectangular: options.NoRectangular = False,
    no_odd_sizes: options.NoOddSizes = False,
    operations: options.Operations = None,
    dtypes: options.Dtypes = None,
    layouts: options.Layouts = None,
    tf32: options.Tf32 = False,
    model_type: training.ModelType = None,
    batch_size: training.BatchSize = None,
    num_epochs: training.NumEpochs = None,
    learning_rate: training.LearningRate = None,
    weight_decay: training.WeightDecay = None,
    patience: training.Patience = None,
    test_share: training.TestShare = None,
    validation_share: training.ValidationShare = None,
    hidden_dim: training.HiddenDim = None,
    num_layers: training.NumLayers = None,
    log_dir: training.LogDir = None,
    init_from: training.InitFrom = None,
    teachers: training.Teachers = 0,
    must_beat_aten: training.MustBeatAten = False,
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
    given = locals()
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

    with ConsoleProgress() as progress:
        results = run(
            output,
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
