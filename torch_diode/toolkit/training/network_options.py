"""The options a network trains with: those given, and for the rest the defaults of its kind."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.networks import LIBRARY
from torch_diode.model.training.library_training import LIBRARY_DEFAULTS
from torch_diode.model.training.options import TrainingOptions
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.types import validation
from torch_diode.types.errors import InvalidValueError, MissingPartError
from torch_diode.types.hardware import Hardware

if TYPE_CHECKING:
    from torch_diode.toolkit.training.fine_tuning import InitialModel

_FINE_TUNE_DEFAULTS: dict[str, Any] = {
    "epochs": 12,
    "learning_rate": 2e-4,
    "aten_epochs": 20,
    "aten_rate": 1e-5,
    "evaluate_every": 1,
}
_OTHER_CHIP_DEFAULTS: dict[str, Any] = {
    "epochs": 24,
    "learning_rate": 1e-3,
    "aten_epochs": 100,
    "aten_rate": 5e-4,
    "evaluate_every": 2,
}
"""For a model of another chip: its library takes other kernels, so there is more to learn."""


def resolve_options(
    options: TrainOptions,
    initial: InitialModel | None,
    seed: int,
    device: str | None,
    hardware: Hardware | None = None,
) -> TrainingOptions:
    """The values given, and for the rest the defaults of training or of fine-tuning, for timings of
    this hardware."""
    on_cpu = hardware is not None and hardware.kind == "cpu"
    kind = options.model_type or (LIBRARY if on_cpu else "deep")
    base: dict[str, Any] = {"kind": kind, "shape": options.shape}
    if kind == LIBRARY:
        base |= LIBRARY_DEFAULTS
    if initial is not None:
        _check_same_network(initial.metadata, options)
        shape = dict(initial.metadata.shape)
        same = hardware is None or hardware.name == initial.metadata.hardware
        defaults = _FINE_TUNE_DEFAULTS if same else _OTHER_CHIP_DEFAULTS
        base = {"kind": initial.metadata.kind, "shape": shape, **defaults}
    return TrainingOptions(**{**base, **options.overrides}, seed=seed, device=_device(device))


def _check_same_network(metadata: ModelMetadata, options: TrainOptions) -> None:
    own = {"model-type": metadata.kind, **metadata.shape}
    kind = {"model-type": options.model_type} if options.model_type else {}
    for name, value in {**kind, **options.shape}.items():
        if own.get(name) != value:
            raise InvalidValueError(
                f"train: got {name} {value} with a model to start from that has {own.get(name)}; "
                "expected the same; leave the option out"
            )


def check_kind(kind: str, hardware: Hardware, initial: InitialModel | None, teachers: int) -> None:
    """Refuse a network that is not for this kind of hardware, and what it has no training of."""
    if (kind == LIBRARY) != (hardware.kind == "cpu"):
        expected = LIBRARY if hardware.kind == "cpu" else "base or deep"
        validation.refuse("train", "model-type", kind, f"{expected} for {hardware.name}")
    if kind == LIBRARY and (initial is not None or teachers):
        name = "init-from" if initial is not None else "teachers"
        raise InvalidValueError(
            f"train: got {name} with timings of {hardware.name}; expected none: a CPU's model "
            "trains in a minute, on all data together; leave the option out"
        )


def _touch(device: str) -> None:
    torch.zeros(1, device=device)


@lru_cache
def _device(name: str | None) -> str:
    try:
        device = torch.device(name or "cpu")
        if device.type != "cpu":
            # In another process: one forked from a process that holds a GPU cannot use it.
            run_in_subprocess(_touch, str(device))
    except (RuntimeError, AssertionError) as fault:
        reason = (str(fault).splitlines() or [""])[0]
        raise MissingPartError(
            f"device: got {name!r:.40}; expected one that is here, such as cpu ({reason:.100})"
        ) from None
    return str(device)
