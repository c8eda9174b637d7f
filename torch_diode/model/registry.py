"""Registry of model files, and the model that serves a hardware.

Models lie in `<folder>/<heuristic>/<hardware>/<name>.pt` (or `.safetensors`). Those elsewhere in a
folder, as `<purpose>/<name>.pt` or `<name>.pt`, are of the hardware that their metadata names.
Folders are those the user names in `TORCH_DIODE_MODEL_PATH`, that of `torch-diode tune --model`,
then those of the package: a user's own model comes first, and before all one that was registered by
hand.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_diode.files.file_errors import naming_file
from torch_diode.files.json import read_json
from torch_diode.files.user_data import user_data
from torch_diode.hardware.catalog import stand_ins
from torch_diode.model.metadata import SUFFIXES
from torch_diode.types.errors import EmptySelectionError, FileFaultError

if TYPE_CHECKING:
    from torch_diode.model.wrapper import ModelWrapper
    from torch_diode.types.hardware import Hardware

PATH_VARIABLE = "TORCH_DIODE_MODEL_PATH"
FOLDER = "trained_models"
PURPOSE = "matmul_kernel_runtime_prediction"
INTERFACE = "torch._inductor.choices"
SHIPPED = "shipped"
"""Stands for the package's own model wherever a model file is named."""


@dataclass(frozen=True, order=True)
class ModelPointer:
    """Path and purpose of a model file, which is not read before `load` or `version`."""

    heuristic: str
    hardware: str
    """Empty for a file that a user names."""
    name: str
    path: Path
    purpose: str = PURPOSE
    interface: str = INTERFACE
    """The module of torch whose decisions it takes."""

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], purpose: str = PURPOSE) -> ModelPointer:
        """The pointer to a model by what its own metadata says; refuse what is no model."""
        from torch_diode.model.checkpoint import load_weights

        target = Path(path).expanduser().absolute()
        metadata, _ = load_weights(target)
        return cls("matmul", metadata.hardware, target.stem, target, purpose)

    @property
    def version(self) -> str:
        """Versions of the file's format and of the features the model reads, such as `1.9`."""
        metadata = self.load().metadata
        return f"{metadata.format_version}.{metadata.features_version}"

    @property
    def size(self) -> int:
        """Bytes of the file."""
        with naming_file(self.path):
            return self.path.stat().st_size

    def exists(self) -> bool:
        """True if the file is there."""
        return self.path.is_file()

    @property
    def label(self) -> str:
        """Name to show: the hardware of a registered model, or the path of another file."""
        return self.hardware or str(self.path)

    @property
    def card_path(self) -> Path:
        """Path of the card beside the model."""
        return self.path.with_suffix(".json")

    def fits(self, threads: int) -> bool:
        """True if the model is of a GPU, or was trained with this number of threads."""
        return not threads or threads in self.load().metadata.threads

    def load(self) -> ModelWrapper:
        """Load the model; refuse it if it was made for another hardware than its folder names."""
        from torch_diode.model.checkpoint import load_model

        model = load_model(self.path)
        if self.hardware and model.metadata.hardware != self.hardware:
            raise FileFaultError(
                f"{self.path}: got a model of {model.metadata.hardware!r:.60}; expected one of "
                f"{self.hardware}; move it to that hardware's folder"
            )
        return model


def shipped_folders() -> tuple[Path, ...]:
    """Folders of the package's own models: inside an installed wheel, or beside a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside, beside = package / FOLDER, package.parent / FOLDER
    is_checkout = (package.parent / "pyproject.toml").is_file()
    return (inside, beside) if is_checkout else (inside,)


def user_folders() -> tuple[Path, ...]:
    """Folders in `TORCH_DIODE_MODEL_PATH`, separated as in PATH, then the one in the user's data
    directory."""
    folders = os.environ.get(PATH_VARIABLE, "").split(os.pathsep)
    return (*(Path(folder).expanduser() for folder in folders if folder), user_data() / FOLDER)


def shipped_model(hardware: Hardware) -> ModelPointer | None:
    """Find the package's own model for a chip or its stand-in."""
    return ModelRegistry(shipped_folders()).find("matmul", hardware)


def resolve_model(name: str, hardware: Hardware) -> ModelPointer | None:
    """Find the model a user names: a path, `shipped`, or with no name the one for the hardware.

    None where no registered model serves the hardware; a file is not looked for before `load`.
    """
    if name == SHIPPED:
        return shipped_model(hardware)
    if name:
        return ModelPointer("matmul", "", Path(name).stem, Path(name))
    return ModelRegistry().find("matmul", hardware)


def model_file(name: str, hardware: Hardware) -> Path:
    """Path of the model a user names: a path, or `shipped`."""
    pointer = resolve_model(name, hardware)
    if pointer is None:
        raise EmptySelectionError(
            f"model: got {SHIPPED}, and none came along for {hardware.name}; expected a chip that "
            "has one; name a model file instead"
        )
    return pointer.path


def load_registered(
    heuristic: str | os.PathLike[str] = "matmul",
    hardware: Hardware | str | None = None,
    name: str = "",
) -> ModelWrapper:
    """Load a model by its file, or the one for a hardware (by default this machine's) from the
    user's folders or the shipped ones; `ModelHeuristic` makes a heuristic of it."""
    if not isinstance(heuristic, str) or Path(heuristic).suffix in SUFFIXES:
        from torch_diode.model.checkpoint import load_model

        return load_model(heuristic)
    from torch_diode.hardware.detect import detect, find

    if hardware is None:
        hardware = detect()
    elif isinstance(hardware, str):
        hardware = find(hardware)
    registry = ModelRegistry()
    pointer = registry.find(heuristic, hardware, name)
    if pointer is None:
        raise EmptySelectionError(
            f"model: got no {heuristic} model for {hardware.name}; expected one in "
            f"{', '.join(map(str, registry.folders))} or in {PATH_VARIABLE}"
        )
    return pointer.load()


_by_hand: list[ModelPointer] = []


def register_model(path: str | os.PathLike[str]) -> ModelPointer:
    """Add a model to this process's registry: it serves its hardware before any other, from the
    next compile on for which no model was loaded yet."""
    pointer = ModelPointer.of_file(path)
    _by_hand[:] = [pointer, *(other for other in _by_hand if other != pointer)]
    return pointer


class ModelRegistry:
    """Models in some folders, by default the user's and then the shipped ones, after those that
    were registered by hand."""

    def __init__(self, folders: Iterable[str | os.PathLike[str]] | None = None) -> None:
        given = (*user_folders(), *shipped_folders()) if folders is None else folders
        self.folders = tuple(Path(folder) for folder in given)
        self._registered = list(_by_hand) if folders is None else []

    def register(self, model: ModelPointer | str | os.PathLike[str]) -> ModelPointer:
        """Add a model to this registry; the last one added comes first."""
        pointer = model if isinstance(model, ModelPointer) else ModelPointer.of_file(model)
        self._registered = [pointer, *(other for other in self._registered if other != pointer)]
        return pointer

    def pointers(self, heuristic: str | None = None) -> list[ModelPointer]:
        """List all models: those registered, then folder by folder, sorted within each."""
        models = [p for folder in self.folders for p in sorted((*_within(folder), *_loose(folder)))]
        return [p for p in (*self._registered, *models) if heuristic in (None, p.heuristic)]

    def unusable(self) -> dict[Path, str]:
        """The files named like models that are none, each with the reason."""
        faults: dict[Path, str] = {}
        for folder in self.folders:
            for _ in _loose(folder, faults):
                pass
        return faults

    def find(self, heuristic: str, hardware: Hardware, name: str = "") -> ModelPointer | None:
        """Find the model for a hardware, or for its best stand-in that has one; None if there is
        none. Of several, the first folder's first; `name` selects a certain one. On a CPU it is one
        that was trained with as many threads."""
        models = [p for p in self.pointers(heuristic) if name in ("", p.name)]
        for chip in stand_ins(hardware, [p.hardware for p in models]):
            for pointer in models:
                if pointer.hardware == chip and pointer.fits(hardware.threads):
                    return pointer
        return None

    def manifest(self) -> dict[str, Any]:
        """List each model with its size, hash and card, as `torch-diode models --json` prints and
        packaging checks."""
        unusable = {str(path): reason for path, reason in self.unusable().items()}
        return {
            "version": 1,
            "models": [_entry(pointer) for pointer in self.pointers()],
            "unusable": unusable,
        }


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    for path in sorted(folder.glob(pattern)):
        if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file():
            yield path


def _within(folder: Path) -> Iterator[ModelPointer]:
    for path in _files(folder, "*/*/*"):
        yield ModelPointer(path.parent.parent.name, path.parent.name, path.stem, path)


def _loose(folder: Path, faults: dict[Path, str] | None = None) -> Iterator[ModelPointer]:
    """The models that are in no folder of a hardware; the reasons why others are none are added to
    `faults`."""
    for path in (*_files(folder, "*"), *_files(folder, "*/*")):
        purpose = PURPOSE if path.parent == folder else path.parent.name
        try:
            yield ModelPointer.of_file(path, purpose)
        except FileFaultError as fault:
            if faults is not None:
                faults[path] = str(fault).removeprefix(f"{path.absolute()}: ")


def _entry(pointer: ModelPointer) -> dict[str, Any]:
    with naming_file(pointer.path):
        data = pointer.path.read_bytes()
    return {
        "heuristic": pointer.heuristic,
        "purpose": pointer.purpose,
        "interface": pointer.interface,
        "hardware": pointer.hardware,
        "name": pointer.name,
        "path": str(pointer.path),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "card": read_json(pointer.card_path) if pointer.card_path.is_file() else None,
    }
