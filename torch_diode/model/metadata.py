"""What a model file says of itself: where it comes from, what it may be asked, how good it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from torch_diode.model.features.names import (
    FEATURE_NAMES,
    FEATURES_VERSION,
    SPLIT_NAMES,
    VENDOR_NAMES,
)
from torch_diode.types.errors import FileFaultError

FORMAT = "torch-diode model"
FORMAT_VERSION = 1
_FEATURES = (*FEATURE_NAMES, *VENDOR_NAMES, *SPLIT_NAMES)
SWEEP = "sweep"
"""The method of timings whose kernels get their sizes as arguments; `options` names a model's
methods, and a file that does not was made from these."""
_MOST_WIDTH = 4096
_SHAPE_NAMES = {"hidden", "layers", "aten_hidden", "aten_layers", "aten_members", "encoder"}
_FIRST_HEAD = {"aten_layers": 2, "aten_members": 6}
"""Of ATen's head where a file does not say: all were so at first."""


@dataclass(frozen=True)
class ModelMetadata:
    """Plain values only: a model file holds these and tensors, and nothing that can run."""

    kind: str
    shape: dict[str, int]
    hardware: str
    arch: str
    covers: list[str]
    """`op/precision` for each pair that was trained on."""
    ranges: dict[str, list[float]]
    """Least and greatest M, N, K, B and flops met in training."""
    torch: list[str]
    triton: list[str]
    dataset_digest: str
    sigma: dict[str, float] = field(default_factory=dict)
    """Error of log times on problems not trained on: `configs` (near the best) and `aten`."""
    scores: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    template_hashes: list[str] = field(default_factory=list)
    features_version: int = FEATURES_VERSION
    feature_names: list[str] = field(default_factory=lambda: list(_FEATURES))
    format: str = FORMAT
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """One line, keys in order: the same metadata always give the same text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: object, source: str) -> ModelMetadata:
        """Checked field by field; anything else than a model of ours is refused."""
        try:
            data = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise FileFaultError(f"{source}: got no torch-diode model; expected one")
        if data.get("format_version") != FORMAT_VERSION:
            raise FileFaultError(
                f"{source}: got model format {data.get('format_version')!r:.20}; expected "
                f"{FORMAT_VERSION}; train again with this release"
            )
        _check_features(data, source)
        _check_fields(cls, data, source)
        return cls(**{**data, "shape": {**_FIRST_HEAD, **data["shape"]}})


def _check_features(data: Mapping[str, Any], source: str) -> None:
    if data.get("features_version") != FEATURES_VERSION:
        raise FileFaultError(
            f"{source}: got features version {data.get('features_version')!r:.20}; expected "
            f"{FEATURES_VERSION}; train the model again, or use the release it was made with"
        )
    if data.get("feature_names") != list(_FEATURES):
        raise FileFaultError(
            f"{source}: got other features than version {FEATURES_VERSION} has; train again"
        )


def _check_fields(cls: type[ModelMetadata], data: Mapping[str, Any], source: str) -> None:
    kinds = {"str": str, "int": int}
    for known in fields(cls):
        annotation = str(known.type)
        expected = kinds.get(annotation, dict if annotation.startswith("dict") else list)
        if not isinstance(data.get(known.name), expected):
            raise FileFaultError(
                f"{source}: got {data.get(known.name)!r:.40} as {known.name}; expected "
                f"{annotation}; the file is damaged or of another release"
            )
    unknown = set(data) - {known.name for known in fields(cls)}
    if unknown:
        raise FileFaultError(f"{source}: got unknown metadata {min(unknown)!r:.40}; expected none")
    for name, width in data["shape"].items():
        if name not in _SHAPE_NAMES or type(width) is not int or not 0 < width <= _MOST_WIDTH:
            raise FileFaultError(
                f"{source}: got shape {name!r:.40} = {width!r:.20}; expected "
                f"{', '.join(sorted(_SHAPE_NAMES))}, 1 to {_MOST_WIDTH}"
            )
    _check_numbers(data, source)


def _check_numbers(data: Mapping[str, Any], source: str) -> None:
    for name, ends in data["ranges"].items():
        numbers = isinstance(ends, list) and all(isinstance(x, int | float) for x in ends)
        if not numbers or len(ends) != 2:
            raise FileFaultError(f"{source}: got range {name!r:.20} = {ends!r:.40}; expected two")
    for key in ("methods", "ops"):
        names = data["options"].get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise FileFaultError(f"{source}: got {key} {names!r:.40}; expected a list of names")
    if not all(isinstance(value, int | float) for value in data["sigma"].values()):
        raise FileFaultError(f"{source}: got sigma {data['sigma']!r:.60}; expected numbers")
