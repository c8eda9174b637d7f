"""The model that comes along with the package, and the word that asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_diode.model.checkpoint import ModelPointer
    from torch_diode.types.hardware import Hardware

SHIPPED = "shipped"


def shipped_model(hardware: Hardware) -> ModelPointer | None:
    """The one for a chip or its stand-in, whatever the user's own folders hold."""
    from torch_diode.model.registry import ModelRegistry, shipped_folders

    return ModelRegistry(shipped_folders()).find("matmul", hardware)


def model_file(named: str, hardware: Hardware) -> Path:
    """The file that a user's word stands for: its path, or `shipped`."""
    from torch_diode.types.errors import EmptySelectionError

    if named != SHIPPED:
        return Path(named)
    pointer = shipped_model(hardware)
    if pointer is None:
        raise EmptySelectionError(
            f"model: got {SHIPPED}, and none came along for {hardware.name}; expected a chip that "
            "has one; name a model file instead"
        )
    return pointer.path
