"""Two short examples that run anywhere: collecting with Inductor's autotuning, and a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch_diode.collection.feedback_timings import CollectionMode
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.files.atomic import refuse_existing
from torch_diode.files.datasets import write_dataset
from torch_diode.files.tables import write_table
from torch_diode.toolkit.collecting.collect import CollectOptions, collect
from torch_diode.toolkit.progress import ProgressCallback, log_progress
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.toolkit.training.train import TrainingResult, train
from torch_diode.types.dataset import Dataset
from torch_diode.types.timing import Prediction

_MAX_SIZE = 192


@dataclass(frozen=True, eq=False)
class CollectorExample:
    """The timings that a collector recorded, and the files they are in."""

    dataset: Dataset
    dataset_file: Path
    table_file: Path


def collector_example(
    output_dir: str | os.PathLike[str] = ".",
    *,
    num_shapes: int = 4,
    device: str | None = None,
    form: str = "json",
    seed: int = 0,
    overwrite: bool = False,
) -> CollectorExample:
    """Compile a few matmuls so that Inductor times them, and write the timings and a table."""
    from torch_diode.integration.autotune.feedback import MatmulDatasetCollector

    folder = Path(output_dir)
    files = folder / f"collector_example.{form}", folder / "collector_example_table.json"
    for file in files:
        refuse_existing(file, overwrite)
    collector = MatmulDatasetCollector()
    dataset = collector.collect_data(
        CollectionMode.RANDOM, device=device, seed=seed, num_shapes=num_shapes, max_size=_MAX_SIZE
    )
    write_dataset(dataset, files[0])
    write_table(collector.to_table(), files[1])
    return CollectorExample(dataset, *files)


@dataclass(frozen=True, eq=False)
class ModelExample:
    """A trained model, and its predictions for the first problem of its data."""

    training: TrainingResult
    problem: str
    predictions: list[Prediction]


def model_example(
    dataset: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] = "example_model.pt",
    options: TrainOptions | None = None,
    *,
    device: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
    on_training: Callable[[TrainingResult], None] | None = None,
    progress: ProgressCallback = log_progress,
) -> ModelExample:
    """Train a small model and predict with it.

    Without a dataset, the libraries of this machine's CPU are timed first, on a few small problems,
    into `example_timings.parquet` beside the model.
    """
    from torch_diode.files.datasets import read_dataset
    from torch_diode.model.wrapper import ModelWrapper

    target = Path(model)
    refuse_existing(target, overwrite)
    if dataset is None:
        sampling = ShapeSampling(24, ("mm", "addmm"), min_size=16, max_size=_MAX_SIZE)
        timing = CollectOptions(device="cpu", libraries_only=True, seed=seed, overwrite=overwrite)
        dataset = target.with_name("example_timings.parquet")
        collect(dataset, sampling, timing, progress=progress)
    settings = options or TrainOptions(num_epochs=6)
    result = train(
        dataset, target, settings, seed=seed, device=device, overwrite=overwrite, progress=progress
    )
    if on_training is not None:
        on_training(result)
    problem = read_dataset(dataset)[0].problem
    return ModelExample(result, str(problem), ModelWrapper(result.path).predict(problem))
