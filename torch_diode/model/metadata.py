"""Metadata of a model file: its origin, its coverage and its scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_diode.model.features.names import (
    FEATURE_NAMES,
    FEATURES_VERSION,
    PRECISIONS,
    SPLIT_NAMES,
    VENDOR_NAMES,
)
from torch_diode.types.errors import FileFaultError
from torch_diode.types.problem import OPS

if TYPE_CHECKING:
    from torch_diode.model.evaluation.scoring import Evaluation
    from torch_diode.model.features.problem_arrays import ProblemArrays
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.training.trainer import Trained
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.hardware import Hardware

SUFFIXES = (".pt", ".safetensors")
FORMAT = "torch-diode model"
FORMAT_VERSION = 1
_FEATURES = (*FEATURE_NAMES, *VENDOR_NAMES, *SPLIT_NAMES)
SWEEP = "sweep"
"""Method of timings whose kernels take their sizes as arguments; `options` names a model's
methods, and a file that names none was made from these."""
_MAX_WIDTH = 4096
_SHAPE_NAMES = {"hidden", "layers", "aten_hidden", "aten_layers", "aten_members", "encoder"}
_OLDEST_HEAD = {"aten_layers": 2, "aten_members": 6}
"""Shape of ATen's head in the first files, which do not state it."""
_SUMMARY_SLICES = ("all", "op=", "precision=")


@dataclass(frozen=True)
class ModelMetadata:
    """Plain values only: a model file holds these and tensors, and no code."""

    kind: str
    shape: dict[str, int]
    hardware: str
    arch: str
    covers: list[str]
    """`MMShape.kind` of the problems in training."""
    ranges: dict[str, list[float]]
    """Least and greatest M, N, K, B and flops in training."""
    torch: list[str]
    triton: list[str]
    dataset_digest: str
    sigma: dict[str, float] = field(default_factory=dict)
    """Error of log times on held-out problems: `configs` (near the best) and `aten`."""
    scores: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    template_hashes: list[str] = field(default_factory=list)
    features_version: int = FEATURES_VERSION
    feature_names: list[str] = field(default_factory=lambda: list(_FEATURES))
    format: str = FORMAT
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """Encode as one line with sorted keys: equal metadata give equal text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: object, source: str) -> ModelMetadata:
        """Decode and check field by field; refuse anything but a torch-diode model."""
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
        return cls(**{**data, "shape": {**_OLDEST_HEAD, **data["shape"]}})


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
        if name not in _SHAPE_NAMES or type(width) is not int or not 0 < width <= _MAX_WIDTH:
            raise FileFaultError(
                f"{source}: got shape {name!r:.40} = {width!r:.20}; expected "
                f"{', '.join(sorted(_SHAPE_NAMES))}, 1 to {_MAX_WIDTH}"
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


def build_metadata(
    trained: Trained,
    part: FeatureTable,
    dataset: Dataset,
    hardware: Hardware,
    evaluation: Evaluation,
) -> ModelMetadata:
    """Build the metadata of a model trained on `part` of a dataset, with its scores on held-out
    problems."""
    p = part.arrays.take(np.unique(part.group[part.is_config]))
    pairs = np.unique(np.stack([p.op, p.precision], axis=1), axis=0).tolist()
    errors = evaluation.errors
    return ModelMetadata(
        kind=trained.network.kind,
        shape=dict(trained.network.shape),
        hardware=hardware.name,
        arch=hardware.arch,
        covers=[f"{OPS[o]}/{PRECISIONS[n]}" for o, n in pairs if n < len(PRECISIONS)],
        ranges=_ranges(p),
        torch=dataset.texts("torch"),
        triton=dataset.texts("triton"),
        dataset_digest=dataset.digest,
        sigma={
            name: round(errors.get(part_name, {}).get("rmse", 0.5), 4)
            for name, part_name in (("configs", "near"), ("aten", "aten"))
        },
        scores={
            name: {f"regret@{score.k}": round(score.geomean, 5) for score in scores}
            for name, scores in evaluation.model.items()
            if name.startswith(_SUMMARY_SLICES) and "," not in name
        },
        options={
            **json.loads(json.dumps(asdict(trained.options))),
            "methods": dataset.texts("method"),
            "ops": dataset.texts("op"),
        },
        template_hashes=list(dataset.provenance.get("templates", ())),
    )


def _ranges(p: ProblemArrays) -> dict[str, list[float]]:
    values = {"M": p.M, "N": p.N, "K": p.K, "B": p.B, "flops": 2 * p.B * p.M * p.N * p.K}
    return {name: [float(v.min()), float(v.max())] for name, v in values.items()}
