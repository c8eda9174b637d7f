"""Options of training; light, since `--help` loads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.help import MORE
from torch_diode.cli.options.parameters import complete
from torch_diode.model.registry import SHIPPED
from torch_diode.toolkit.training.options import MODEL_TYPES

Model = Annotated[Path, typer.Option(help="Model file to write, .pt or .safetensors.")]


class TrainingOptions:
    """Options of a training."""

    model_type: Annotated[
        str | None,
        typer.Option(
            help="Network: base (feed-forward) or deep (residual; default) on GPUs, library on "
            "CPUs.",
            autocompletion=complete(MODEL_TYPES),
        ),
    ] = None
    batch_size: Annotated[
        int | None, typer.Option(help="Problems per step (128).", min=1, rich_help_panel=MORE)
    ] = None
    num_epochs: Annotated[
        int | None, typer.Option(help="Times through the data (36; 12 with --init-from).", min=1)
    ] = None
    minutes: Annotated[
        float | None,
        typer.Option(help="Train for so long at most, without reading the data and scoring."),
    ] = None
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Peak learning rate (0.004; 0.0002 with --init-from).", rich_help_panel=MORE
        ),
    ] = None
    weight_decay: Annotated[
        float | None, typer.Option(help="Weight decay (0.001).", min=0, rich_help_panel=MORE)
    ] = None
    patience: Annotated[
        int | None,
        typer.Option(
            help="Epochs without a better validation regret, then it stops (12).",
            min=1,
            rich_help_panel=MORE,
        ),
    ] = None
    test_share: Annotated[
        float | None,
        typer.Option(
            help="Share of the problems held out for the scores (0.15).",
            min=0,
            max=0.9,
            rich_help_panel=MORE,
        ),
    ] = None
    validation_share: Annotated[
        float | None,
        typer.Option(
            help="Share of the problems to stop by (0.1).",
            min=0.001,
            max=0.9,
            rich_help_panel=MORE,
        ),
    ] = None
    hidden_dim: Annotated[
        int | None,
        typer.Option(help="Width of the layers (96).", min=1, max=4096, rich_help_panel=MORE),
    ] = None
    num_layers: Annotated[
        int | None, typer.Option(help="Layers (2).", min=1, max=64, rich_help_panel=MORE)
    ] = None
    log_dir: Annotated[
        Path, typer.Option(help="Folder for the loss and regret curves, as CSV and SVG.")
    ] = Path("logs")
    init_from: Annotated[
        str | None,
        typer.Option(
            help="Start from a trained model: its file, or `shipped` (fine-tuning).",
            autocompletion=complete([SHIPPED]),
        ),
    ] = None
    teachers: Annotated[
        int,
        typer.Option(
            help="Wider networks to distill into the model, each trained by a process of its own "
            "(0; the shipped model has 5).",
            min=0,
            max=32,
        ),
    ] = 0
    must_beat_aten: Annotated[
        bool,
        typer.Option(
            "--must-beat-aten",
            help="Write no model, and exit with 1, if ATen alone is better in any op or dtype.",
        ),
    ] = False
