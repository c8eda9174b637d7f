"""Model files: weights and plain metadata, as `.pt` or `.safetensors`.

Nothing in a model file can run code: `.pt` is read with `weights_only=True`, which accepts tensors
and plain containers only, and the weights are checked by name and shape against the network that
the metadata describe.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.numpy

from torch_diode.files.atomic import write_bytes
from torch_diode.files.file_errors import naming_file
from torch_diode.model.features.names import CPU_NAMES
from torch_diode.model.metadata import SUFFIXES, ModelMetadata
from torch_diode.model.networks import LIBRARY, file_names, module_names
from torch_diode.types.errors import FileFaultError

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats
    from torch_diode.model.networks.library_model import Network
    from torch_diode.model.wrapper import ModelWrapper

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
"""Raised by torch.load for damaged files; it has no error class of its own."""


def save_model(
    path: str | os.PathLike[str],
    weights: Mapping[str, Any],
    metadata: ModelMetadata,
    overwrite: bool = True,
) -> None:
    """Write a model, in the form its suffix names. `weights` is a network's `state_dict`."""
    target = Path(path)
    arrays = {name: np.asarray(value.detach().cpu()) for name, value in file_names(weights).items()}
    arrays = {name: np.ascontiguousarray(a, np.float32) for name, a in arrays.items()}
    check_suffix(target)
    if target.suffix == ".safetensors":
        data = safetensors.numpy.save(arrays, {_KEY: metadata.to_json()})
        write_bytes(target, data, overwrite)
    else:
        import torch

        tensors = {name: torch.from_numpy(a.copy()) for name, a in arrays.items()}
        write_tensors(target, {_KEY: metadata.to_json(), "weights": tensors}, overwrite)


def write_tensors(path: Path, data: Mapping[str, Any], overwrite: bool = True) -> None:
    """Write tensors and plain values as a torch file atomically.

    In memory first: what torch raises on a full disk has neither the file nor the reason.
    """
    import torch

    buffer = io.BytesIO()
    torch.save(data, buffer)
    write_bytes(path, buffer.getvalue(), overwrite)


def load_model(path: str | os.PathLike[str]) -> ModelWrapper:
    """Read and check a model; any fault of the file is a `FileFaultError`."""
    from torch_diode.model.wrapper import ModelWrapper

    return ModelWrapper.load(path)


def load_network(path: str | os.PathLike[str]) -> tuple[ModelMetadata, Network]:
    """Read a model as a torch network, to score it on a dataset or to train it further."""
    metadata, arrays = load_weights(path)
    return metadata, network_of(metadata, arrays)


def network_of(metadata: ModelMetadata, arrays: Mapping[str, Floats]) -> Network:
    """Build the torch network of a model's weights."""
    import torch

    from torch_diode.model.networks.library_model import LibraryTimingModel, build_any

    network = build_any(metadata.kind, metadata.shape)
    if isinstance(network, LibraryTimingModel):
        network.labels = tuple(metadata.labels)
    network.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in arrays.items()})
    return network.eval()


def load_weights(path: str | os.PathLike[str]) -> tuple[ModelMetadata, dict[str, Floats]]:
    """Read a model's metadata and its weights by name, checked against each other."""
    target = Path(path)
    check_suffix(target)
    with naming_file(target):
        size = target.stat().st_size
    if size > _MOST_BYTES:
        raise FileFaultError(f"{target}: got {size} bytes; expected a model of at most 64 MiB")
    read = _read_safetensors if target.suffix == ".safetensors" else _read_pt
    text, arrays = read(target)
    arrays = module_names(arrays)
    metadata = ModelMetadata.from_json(text, str(target))
    _check_weights(target, metadata, arrays)
    return metadata, arrays


def check_suffix(path: Path) -> None:
    """Refuse a model path whose suffix names no form."""
    if path.suffix not in SUFFIXES:
        raise FileFaultError(
            f"{path}: got a model path ending in {path.suffix!r}; expected {' or '.join(SUFFIXES)}"
        )


def read_tensors(path: Path, device: str = "cpu") -> dict[str, Any]:
    """Read tensors and plain values from a torch file, without running any code in it."""
    import torch
    from torch import _weights_only_unpickler as unpickler

    # torch exports no name for this error.
    more_than_plain: type[Exception] = unpickler.UnpicklingError  # type: ignore[attr-defined]
    try:
        with naming_file(path):
            _check_sums(path)
            data = torch.load(path, map_location=device, weights_only=True)
    except more_than_plain:
        # torch's own message advises how to load it all the same.
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
    """Refuse a file with a flipped byte, which torch would read as another number, and a file that
    is no archive, such as a bare pickle."""
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
    if "model_state_dict" in data:
        raise FileFaultError(
            f"{path}: got a model of torch-diode 0.1.1, whose features are not computed any more; "
            "train it again from its timings, which can be read: torch-diode train --dataset "
            "timings.json --model new.pt"
        )
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
    """Require the names and shapes of the network that the metadata name, and finite numbers."""
    from torch_diode.model.networks.library_model import build_any
    from torch_diode.model.networks.timing_models import NETWORKS

    kinds = (*NETWORKS, LIBRARY)
    if metadata.kind not in kinds or (metadata.kind == "base" and "encoder" in metadata.shape):
        raise FileFaultError(
            f"{path}: got a {metadata.kind!r:.40} network of {metadata.shape}; expected one of "
            f"{', '.join(kinds)}"
        )
    if _least_weights(metadata.shape) > sum(value.size for value in arrays.values()):
        raise FileFaultError(
            f"{path}: got weights that do not fit a {metadata.kind} network of {metadata.shape}; "
            "expected more of them"
        )
    network = build_any(metadata.kind, metadata.shape)
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    shapes = {name: value.shape for name, value in arrays.items()}
    if shapes != expected:
        wrong = sorted(set(shapes.items()) ^ set(expected.items()))
        raise FileFaultError(
            f"{path}: got weights that do not fit a {metadata.kind} network, first {wrong[0]!s:.80}"
        )
    for name, value in arrays.items():
        if value.dtype != np.float32 or not np.isfinite(value).all():
            raise FileFaultError(f"{path}: got {name} with values that are no finite float32")


def _least_weights(shape: Mapping[str, int]) -> int:
    """Lower bound on the number of weights: a small file must not have a huge network built."""
    deep = (shape.get("layers", 1) - 1) * shape.get("hidden", 1) ** 2
    each = (shape.get("aten_layers", 1) - 1) * shape.get("aten_hidden", 1) ** 2
    aten = max(each, shape.get("aten_hidden", 1)) * shape.get("aten_members", 1)
    ends = (len(CPU_NAMES) + shape.get("labels", 0)) * shape.get("hidden", 1)
    library = shape["members"] * (deep + ends) if "members" in shape else 0
    return max(deep, aten, library, shape.get("encoder", 1) ** 2)
