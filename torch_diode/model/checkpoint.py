"""Model files: weights and plain metadata, as `.pt` or `.safetensors`.

Nothing in a model file can run code: `.pt` is read with `weights_only=True`, which knows tensors
and plain containers alone, and what comes out is checked name by name and shape by shape against
the network it claims to be.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.numpy

from torch_diode.files.atomic import replacing
from torch_diode.files.file_errors import naming_file
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.wrapper import ModelWrapper
from torch_diode.types.errors import FileFaultError

if TYPE_CHECKING:
    from torch_diode.model.networks.timing_models import TimingNetwork

SUFFIXES = (".pt", ".safetensors")
_MOST_BYTES = 64 * 2**20
_KEY = "torch_diode"
_TORCH_FAULTS = (
    RuntimeError,
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    AssertionError,
)
"""What torch.load raises for files that are not what they seem; it has no error of its own."""


@dataclass(frozen=True, order=True)
class ModelPointer:
    """Where a model lies and what it is for; nothing of it is read before `load`."""

    heuristic: str
    hardware: str
    name: str
    path: Path

    @property
    def card_path(self) -> Path:
        """The card beside the model."""
        return self.path.with_suffix(".json")

    def load(self) -> ModelWrapper:
        """The model, ready to be asked. Refused if it was made for another hardware than the
        folder it lies in says."""
        model = load_model(self.path)
        if model.metadata.hardware != self.hardware:
            raise FileFaultError(
                f"{self.path}: got a model of {model.metadata.hardware!r:.60}; expected one of "
                f"{self.hardware}; move it to that hardware's folder"
            )
        return model


def save_model(
    path: str | os.PathLike[str], weights: Mapping[str, Any], metadata: ModelMetadata
) -> None:
    """Write a model; the suffix says which form. `weights` is a network's `state_dict`."""
    target = Path(path)
    arrays = {name: np.asarray(value.detach().cpu()) for name, value in weights.items()}
    arrays = {name: np.ascontiguousarray(a, np.float32) for name, a in arrays.items()}
    check_suffix(target)
    with replacing(target) as temporary:
        if target.suffix == ".safetensors":
            data = safetensors.numpy.save(arrays, {_KEY: metadata.to_json()})
            temporary.write_bytes(data)
        else:
            import torch

            tensors = {name: torch.from_numpy(a.copy()) for name, a in arrays.items()}
            torch.save({_KEY: metadata.to_json(), "weights": tensors}, temporary)


def load_model(path: str | os.PathLike[str]) -> ModelWrapper:
    """Read a model, checked; one clear error for whatever is wrong with the file."""
    return ModelWrapper(*load_weights(path))


def load_network(path: str | os.PathLike[str]) -> tuple[ModelMetadata, TimingNetwork]:
    """Read a model as a torch network: to score it on a whole dataset, or to train it further."""
    metadata, arrays = load_weights(path)
    return metadata, network_of(metadata, arrays)


def network_of(metadata: ModelMetadata, arrays: Mapping[str, Floats]) -> TimingNetwork:
    """The torch network that a model's weights are of."""
    import torch

    from torch_diode.model.networks.timing_models import build_network

    network = build_network(metadata.kind, metadata.shape)
    network.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in arrays.items()})
    return network.eval()


def load_weights(path: str | os.PathLike[str]) -> tuple[ModelMetadata, dict[str, Floats]]:
    """What a model file says of itself, and its weights by name, checked against it."""
    target = Path(path)
    check_suffix(target)
    with naming_file(target):
        size = target.stat().st_size
    if size > _MOST_BYTES:
        raise FileFaultError(f"{target}: got {size} bytes; expected a model of at most 64 MiB")
    read = _read_safetensors if target.suffix == ".safetensors" else _read_pt
    text, arrays = read(target)
    metadata = ModelMetadata.from_json(text, str(target))
    _check_weights(target, metadata, arrays)
    return metadata, arrays


def check_suffix(path: Path) -> None:
    """Refuse a model path whose ending says nothing about its form."""
    if path.suffix not in SUFFIXES:
        raise FileFaultError(
            f"{path}: got a model path ending in {path.suffix!r}; expected {' or '.join(SUFFIXES)}"
        )


def read_tensors(path: Path, device: str = "cpu") -> dict[str, Any]:
    """Named tensors and plain values from a file of torch's own form; nothing in it can run."""
    import torch
    from torch import _weights_only_unpickler as unpickler

    # What torch refuses a file with is no class of its own.
    more_than_plain: type[Exception] = unpickler.UnpicklingError  # type: ignore[attr-defined]
    try:
        with naming_file(path):
            _check_sums(path)
            data = torch.load(path, map_location=device, weights_only=True)
    except more_than_plain:
        # Torch's own words are advice on how to load it all the same.
        raise FileFaultError(
            f"{path}: got a file with more in it than tensors and plain values; expected a "
            "torch-diode model"
        ) from None
    except (zipfile.BadZipFile, *_TORCH_FAULTS) as fault:
        reason = (str(fault).splitlines() or [""])[0]
        raise FileFaultError(
            f"{path}: got a file that is no plain model ({type(fault).__name__}: {reason:.120}); "
            "expected tensors and metadata only"
        ) from None
    return data if isinstance(data, dict) else {}


def _check_sums(path: Path) -> None:
    """Refuse a file with a flipped byte, which torch would read as another number; and one that
    is no archive: such were torch's files long ago, and a bare pickle is one still."""
    if not zipfile.is_zipfile(path):
        raise FileFaultError(
            f"{path}: got a file that is no plain model (no archive of torch's); expected tensors "
            "and metadata only"
        )
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise FileFaultError(f"{path}: got a damaged file ({damaged:.60}); fetch or make it again")


def _read_pt(path: Path) -> tuple[object, dict[str, Floats]]:
    import torch

    data = read_tensors(path)
    weights = data.get("weights")
    if not isinstance(weights, dict):
        raise FileFaultError(f"{path}: got no weights; expected a torch-diode model")
    arrays = {}
    for name, value in weights.items():
        plain = isinstance(value, torch.Tensor) and value.dtype == torch.float32
        if not isinstance(name, str) or not plain or value.layout != torch.strided:
            raise FileFaultError(f"{path}: got weight {name!r:.40}; expected float32 tensors")
        arrays[name] = value.detach().contiguous().numpy()
    return data.get(_KEY), arrays


def _read_safetensors(path: Path) -> tuple[object, dict[str, Floats]]:
    try:
        with naming_file(path), safetensors.safe_open(path, "numpy") as file:
            text = (file.metadata() or {}).get(_KEY)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, ValueError, TypeError) as fault:
        raise FileFaultError(f"{path}: got a damaged safetensors file ({fault!s:.120})") from None
    return text, arrays


def _check_weights(path: Path, metadata: ModelMetadata, arrays: dict[str, Floats]) -> None:
    """Names and shapes are those of the network the metadata name, and all numbers finite."""
    from torch_diode.model.networks.timing_models import NETWORKS, build_network

    if metadata.kind not in NETWORKS or (metadata.kind == "base" and "encoder" in metadata.shape):
        raise FileFaultError(
            f"{path}: got a {metadata.kind!r:.40} network of {metadata.shape}; expected one of "
            f"{', '.join(NETWORKS)}"
        )
    if _least_weights(metadata.shape) > sum(value.size for value in arrays.values()):
        raise FileFaultError(
            f"{path}: got weights that do not fit a {metadata.kind} network of {metadata.shape}; "
            "expected more of them"
        )
    network = build_network(metadata.kind, metadata.shape)
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    found = {name: value.shape for name, value in arrays.items()}
    if found != expected:
        wrong = sorted(set(found.items()) ^ set(expected.items()))
        raise FileFaultError(
            f"{path}: got weights that do not fit a {metadata.kind} network, first {wrong[0]!s:.80}"
        )
    for name, value in arrays.items():
        if value.dtype != np.float32 or not np.isfinite(value).all():
            raise FileFaultError(f"{path}: got {name} with values that are no finite float32")


def _least_weights(shape: Mapping[str, int]) -> int:
    """How many weights a network has at least, so that a file cannot have a far larger one built
    than it holds."""
    deep = (shape.get("layers", 1) - 1) * shape.get("hidden", 1) ** 2
    each = (shape.get("aten_layers", 1) - 1) * shape.get("aten_hidden", 1) ** 2
    aten = max(each, shape.get("aten_hidden", 1)) * shape.get("aten_members", 1)
    return max(deep, aten, shape.get("encoder", 1) ** 2)
