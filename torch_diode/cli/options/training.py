"""The options of training, in words; light, since `--help` loads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from torch_diode.types import validation

MODEL_TYPES = ("base", "deep")
_MOST_HELD = 0.9

Model = Annotated[Path, typer.Option(help="Model file to write, .pt or .safetensors.")]


@dataclass(frozen=True)
class Learning:
    """How to train. What is None is left to the defaults, which differ where a run starts from a
    trained model."""

    model_type: Annotated[
        str | None, typer.Option(help="Network: base (feed-forward) or deep (residual; default).")
    ] = None
    batch_size: Annotated[int | None, typer.Option(help="Problems a step (128).", min=1)] = None
    num_epochs: Annotated[
        int | None, typer.Option(help="Times through the data (36; 12 with --init-from).", min=1)
    ] = None
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak learning rate (0.004; 0.0002 with --init-from).")
    ] = None
    weight_decay: Annotated[float | None, typer.Option(help="Weight decay (0.001).", min=0)] = None
    patience: Annotated[
        int | None,
        typer.Option(help="Epochs without a better validation regret, then it stops (12).", min=1),
    ] = None
    test_share: Annotated[
        float | None,
        typer.Option(help="Of the problems, held out for the scores (0.15).", min=0, max=0.9),
    ] = None
    validation_share: Annotated[
        float | None,
        typer.Option(help="Of the problems, to stop by (0.1).", min=0.001, max=0.9),
    ] = None
    hidden_dim: Annotated[
        int | None, typer.Option(help="Width of the layers (96).", min=1, max=4096)
    ] = None
    num_layers: Annotated[
        int | None, typer.Option(help="Layers, or blocks (2).", min=1, max=64)
    ] = None
    log_dir: Annotated[
        Path | None, typer.Option(help="Folder for the loss and regret curves, as CSV and SVG.")
    ] = None
    init_from: Annotated[
        str | None,
        typer.Option(help="Start from a trained model: its file, or `shipped` (fine-tuning)."),
    ] = None
    teachers: Annotated[
        int,
        typer.Option(
            help="Wider networks trained too; what they agree on is the model's last lesson. They "
            "are trained beside it, a process each (0; the shipped model has 5).",
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

    def __post_init__(self) -> None:
        if self.model_type is not None:
            validation.one_of("train", "model-type", self.model_type, MODEL_TYPES)
        if self.learning_rate is not None and not 0 < self.learning_rate < 1:
            validation.refuse("train", "learning-rate", self.learning_rate, "a number from 0 to 1")
        if self.weight_decay is not None and not self.weight_decay < 1:
            validation.refuse("train", "weight-decay", self.weight_decay, "a number from 0 to 1")
        if (self.test_share or 0) + (self.validation_share or 0) > _MOST_HELD:
            shares = f"{self.test_share} and {self.validation_share}"
            expected = f"at most {_MOST_HELD} together, since the rest is to train on"
            validation.refuse("train", "test-share and validation-share", shares, expected)

    @property
    def shape(self) -> dict[str, int]:
        """The network's sizes that were given."""
        given = {"hidden": self.hidden_dim, "layers": self.num_layers}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def rest(self) -> dict[str, Any]:
        """What else was given, as training calls it."""
        given = {
            "batch_problems": self.batch_size,
            "epochs": self.num_epochs,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "patience": self.patience,
            "test_share": self.test_share,
            "validation_share": self.validation_share,
        }
        return {name: value for name, value in given.items() if value is not None}
