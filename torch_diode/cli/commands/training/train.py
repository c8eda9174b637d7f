"""`torch-diode train`: from timings to a model, its card and its curves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.commands.data.convert import refuse_existing
from torch_diode.cli.options.groups import expand_options
from torch_diode.cli.options.training import Learning, Model
from torch_diode.types.errors import InvalidValueError


@expand_options
def train(
    context: typer.Context,
    model: Model,
    learning: Learning,
    dataset: Annotated[
        Path | None, typer.Option(help="Dataset file or directory of shards.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Directory whose datasets to train on, all together.")
    ] = None,
    file_extensions: Annotated[
        list[str] | None,
        typer.Option(help="Forms to read in --data-dir: parquet, msgpack, json (all)."),
    ] = None,
    hardware_name: Annotated[str | None, typer.Option(help="Only this hardware's timings.")] = None,
    op_name: Annotated[
        list[str] | None, typer.Option(help="Only this operation; may be given again.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the model if it exists.")] = False,
) -> None:
    """Train a model; what is not given is what the shipped model was trained with.

    Problems are split, never their timings: some to train on, some to stop by, and some held out
    that the scores are of. A run that was killed goes on when the same command is given again.

    Example: torch-diode train --dataset timings.parquet --model my_model.pt --log-dir logs

    \b
    $ torch-diode --seed 42 train --data-dir . --model tutorial_model.pt --num-epochs 50 ...
    17,350 timings of 10 problems on nvidia-h200
    8 problems to train on, 2 to stop by, 0 held out
    Batches of 1: there are few problems to take steps by
    epoch 3 of 50: loss 0.5963  regret@1 1.0366  regret@3 1.0366  regret@5 1.0366  2 s
    ...
    tutorial_model.pt: 1,956 kB; card in tutorial_model.json and tutorial_model.md

    Fine-tune the shipped model on your own timings, in minutes:
    torch-diode train --init-from shipped --dataset mine.parquet --model mine.pt
    """
    refuse_existing(model, overwrite)
    source = _one_of(dataset, data_dir)
    from torch_diode.toolkit.training.train import Data, Training

    data = Data(source, file_extensions, hardware_name, tuple(op_name or ()))
    Training(data, model, learning, context.obj.seed or 0, context.obj.device).run()


def _one_of(dataset: Path | None, data_dir: Path | None) -> Path:
    if (dataset is None) == (data_dir is None):
        raise InvalidValueError(
            f"train: got {'both' if dataset else 'neither'} of --dataset and --data-dir; "
            "expected one of them"
        )
    found = dataset or data_dir
    assert found is not None
    return found
