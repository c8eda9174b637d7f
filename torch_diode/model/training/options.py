"""Options of a training run, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from torch_diode.model.training.epoch import EpochOptions, Row

if TYPE_CHECKING:
    from torch_diode.model.networks.library_model import Network

NetworkType = TypeVar("NetworkType", bound="Network", covariant=True)


@dataclass(frozen=True)
class TrainingOptions(EpochOptions):
    """Options of a training run."""

    kind: str = "deep"
    shape: dict[str, int] = field(default_factory=dict)
    epochs: int = 36
    batch_problems: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 1e-3
    warmup: float = 0.15
    patience: int = 12
    """Epochs without a better validation regret after which to stop."""
    evaluate_every: int = 3
    temperature: float = 0.06
    list_weight: float = 0.05
    near: float = 0.25
    floor: float = 0.05
    far: float = 1.6
    far_share: float = 0.3
    aten_epochs: int = 150
    aten_rows: int = 30_000_000
    """Timings of ATen to see in total, at most: fewer epochs if there are many."""
    aten_rate: float = 2e-3
    aten_dropout: float = 0.05
    split_epochs: int = 100
    test_share: float = 0.15
    validation_share: float = 0.10
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Trained(Generic[NetworkType]):
    """Network with the best validation regret, and the history of its training."""

    network: NetworkType
    history: list[Row]
    options: TrainingOptions
