"""The registry: which models there are, and which one serves a hardware.

Models lie in `<folder>/<heuristic>/<hardware>/<name>.pt` (or `.safetensors`). Folders are the
user's own, named in `TORCH_DIODE_MODEL_PATH`, and those that came with the package, in this order:
who puts a model of their own there wants it used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch_diode.files.file_errors import naming_file
from torch_diode.hardware import detect, known, stand_ins
from torch_diode.model.checkpoint import SUFFIXES, ModelPointer
from torch_diode.model.wrapper import ModelWrapper
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.hardware import Hardware

PATH_VARIABLE = "TORCH_DIODE_MODEL_PATH"
FOLDER = "trained_models"


def shipped_folders() -> tuple[Path, ...]:
    """Where the package's own models lie: inside an installed wheel, or beside a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside, beside = package / FOLDER, package.parent / FOLDER
    is_checkout = (package.parent / "pyproject.toml").is_file()
    return (inside, beside) if is_checkout else (inside,)


def user_folders() -> tuple[Path, ...]:
    """The folders the user names, separated as in PATH."""
    named = os.environ.get(PATH_VARIABLE, "")
    return tuple(Path(part).expanduser() for part in named.split(os.pathsep) if part)


def load_registered(
    heuristic: str = "matmul", hardware: Hardware | str | None = None, name: str = ""
) -> ModelWrapper:
    """The model for a hardware (this machine's if none is named), from the user's folders or the
    shipped ones; `ModelHeuristic` makes a heuristic of it."""
    if not isinstance(hardware, Hardware):
        hardware = detect() if hardware is None else known(hardware)
    pointer = ModelRegistry().find(heuristic, hardware, name)
    if pointer is None:
        raise EmptySelectionError(
            f"model: got no {heuristic} model for {hardware.name}; expected one in "
            f"{', '.join(map(str, ModelRegistry().folders))} or in {PATH_VARIABLE}"
        )
    return pointer.load()


class ModelRegistry:
    """The models in some folders, the first folder's before the next one's."""

    def __init__(self, folders: Iterable[str | os.PathLike[str]] | None = None) -> None:
        given = (*user_folders(), *shipped_folders()) if folders is None else folders
        self.folders = tuple(Path(folder) for folder in given)

    def pointers(self, heuristic: str | None = None) -> list[ModelPointer]:
        """All models, folder by folder, each folder's in the order of their names."""
        found: list[ModelPointer] = []
        for folder in self.folders:
            found += sorted(pointer for pointer in _within(folder))
        return [p for p in found if heuristic in (None, p.heuristic)]

    def find(self, heuristic: str, hardware: Hardware, name: str = "") -> ModelPointer | None:
        """The model for a hardware, or for the best stand-in that has one; None where there is
        none. Of several, the first folder's first; `name` asks for a certain one."""
        offered = [p for p in self.pointers(heuristic) if name in ("", p.name)]
        for chip in stand_ins(hardware, [p.hardware for p in offered]):
            for pointer in offered:
                if pointer.hardware == chip:
                    return pointer
        return None

    def manifest(self) -> dict[str, Any]:
        """What there is, as JSON holds it: each model with its size, its hash and its card.
        `torch-diode models --json` prints it."""
        return {"version": 1, "models": [_entry(pointer) for pointer in self.pointers()]}


def _within(folder: Path) -> Iterable[ModelPointer]:
    for path in folder.glob("*/*/*"):
        if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file():
            yield ModelPointer(path.parent.parent.name, path.parent.name, path.stem, path)


def _entry(pointer: ModelPointer) -> dict[str, Any]:
    with naming_file(pointer.path):
        data = pointer.path.read_bytes()
    return {
        "heuristic": pointer.heuristic,
        "hardware": pointer.hardware,
        "name": pointer.name,
        "path": str(pointer.path),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "card": _card(pointer),
    }


def _card(pointer: ModelPointer) -> Any:
    path = pointer.card_path
    if not path.is_file():
        return None
    try:
        with naming_file(path):
            return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise FileFaultError(f"{path}: got {fault}; expected a model's card as JSON") from None
