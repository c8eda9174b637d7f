"""`torch-diode train`: train a model on timings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from torch_diode.cli.console.output import print_line, print_notes
from torch_diode.cli.options import filters
from torch_diode.cli.options import training as options
from torch_diode.cli.options.default_paths import MODEL, written_dataset
from torch_diode.cli.options.parameters import OVERWRITE, build, option, taking
from torch_diode.files.datasets import READABLE
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.types.errors import InvalidValueError

if TYPE_CHECKING:
    from torch_diode.toolkit.training.train import TrainingResult


@taking(options.TRAINING)
def train(
    context: typer.Context,
    model: Path = option(options.MODEL_TO_WRITE, default=MODEL),
    dataset: Path | None = option(
        "Dataset file or directory; matmul_dataset.<format> if neither is given."
    ),
    data_dir: Path | None = option(
        "Directory whose datasets, also in folders, to train on together."
    ),
    file_extensions: list[str] | None = option(
        "Forms to read in --data-dir: parquet, msgpack, json, txt (all).", values=READABLE
    ),
    hardware_name: str | None = filters.HARDWARE_NAME,
    op_name: list[str] | None = filters.OP_NAME,
    overwrite: bool = OVERWRITE,
    **given: Any,
) -> None:
    """Train a model on timings.

    The dataset is split by problem: some to train on, some to decide when to stop, and some held
    out for the scores. After Ctrl-C or a kill the same command continues. The shipped model for the
    H200 has five --teachers; --init-from shipped fine-tunes it on your own timings.

    Example: torch-diode train --dataset timings.parquet --model my_model.pt --minutes 5
    """
    if dataset is not None and data_dir is not None:
        raise InvalidValueError("train: got both of --dataset and --data-dir; expected one of them")
    learning = build(TrainOptions, given)
    source = data_dir or written_dataset(context, dataset)
    from torch_diode.cli.console.progress import ConsoleProgress
    from torch_diode.toolkit.training import train as api

    with ConsoleProgress() as progress:
        result = api.train(
            source,
            model,
            learning,
            hardware=hardware_name,
            ops=op_name or (),
            forms=file_extensions,
            seed=context.obj.seed or 0,
            device=context.obj.device,
            overwrite=overwrite,
            progress=progress,
        )
    print_training(result)
    if not result.is_written:
        raise typer.Exit(1)


def print_training(result: TrainingResult) -> None:
    """Print the scores of a trained model, and its files."""
    from torch_diode.cli.console.score_tables import print_evaluation

    print_evaluation(result.evaluation)
    print_line(f"Scores are of {result.scored_on}.")
    print_notes(result.notes)
    if result.curve_files:
        print_line(f"Curves in {' and '.join(map(str, result.curve_files))}")
    better = f"ATen alone is better in {', '.join(result.worse_than_aten)}"
    if not result.is_written:
        print_line(f"{result.path}: not written, {better}")
        return
    if result.worse_than_aten:
        print_line(f"Warning: {better}.")
    size = result.path.stat().st_size / 1e3
    cards = " and ".join(file.name for file in result.card_files[:2])
    print_line(f"{result.path}: {size:,.0f} kB; card in {cards}")
