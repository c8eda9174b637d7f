"""Options of a training run; light to import, since the command line reads them for `--help`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_diode.types import validation

MODEL_TYPES = ("base", "deep", "library")
_MOST_HELD_OUT = 0.9
_MOST_MINUTES = 1e6


@dataclass(frozen=True)
class TrainOptions:
    """Settings of training. None stands for the default, which differs for fine-tuning."""

    model_type: str | None = None
    """Network: `base` (feed-forward) or `deep` (residual) for GPUs, `library` for CPUs."""
    batch_size: int | None = None
    """Problems per step."""
    num_epochs: int | None = None
    minutes: float | None = None
    """Time to train at most; the learning rate then falls with the time."""
    learning_rate: float | None = None
    """Peak learning rate."""
    weight_decay: float | None = None
    patience: int | None = None
    """Epochs without a better validation regret after which training stops."""
    test_share: float | None = None
    """Share of the problems that is held out for the scores."""
    validation_share: float | None = None
    """Share of the problems that decides when to stop."""
    hidden_dim: int | None = None
    num_layers: int | None = None
    log_dir: Path | None = None
    """Folder for the loss and regret curves, as CSV and SVG."""
    init_from: str | None = None
    """Trained model to fine-tune: its file, or `shipped`."""
    teachers: int = 0
    """Wider networks to distill into the model, each trained by a process of its own."""
    must_beat_aten: bool = False
    """Write no model if ATen alone is better in any operation or precision."""

    def __post_init__(self) -> None:
        if self.model_type is not None:
            validation.one_of("train", "model-type", self.model_type, MODEL_TYPES)
        if self.learning_rate is not None and not 0 < self.learning_rate < 1:
            validation.refuse("train", "learning-rate", self.learning_rate, "a number from 0 to 1")
        if self.weight_decay is not None and not self.weight_decay < 1:
            validation.refuse("train", "weight-decay", self.weight_decay, "a number from 0 to 1")
        if self.minutes is not None:
            if not 0 < self.minutes < _MOST_MINUTES:
                validation.refuse("train", "minutes", self.minutes, "a number above 0")
            if self.teachers:
                expected = "none with minutes, since each is trained to its end"
                validation.refuse("train", "teachers", self.teachers, expected)
        if (self.test_share or 0) + (self.validation_share or 0) > _MOST_HELD_OUT:
            shares = f"{self.test_share} and {self.validation_share}"
            expected = f"at most {_MOST_HELD_OUT} together, since the rest is to train on"
            validation.refuse("train", "test-share and validation-share", shares, expected)

    @property
    def shape(self) -> dict[str, int]:
        """The sizes of the network that were given."""
        given = {"hidden": self.hidden_dim, "layers": self.num_layers}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def overrides(self) -> dict[str, Any]:
        """The other values that were given, by their names in `TrainingOptions`."""
        names = ("learning_rate", "weight_decay", "patience", "test_share", "validation_share")
        given = {name: getattr(self, name) for name in names}
        given |= {"batch_problems": self.batch_size, "epochs": self.num_epochs}
        return {name: value for name, value in given.items() if value is not None}
