"""Metadata of a model file: its origin, its coverage and its scores."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.names import (
    CPU_FEATURES_VERSION,
    CPU_NAMES,
    FEATURE_NAMES,
    FEATURES_VERSION,
    PRECISIONS,
    SPLIT_NAMES,
    VENDOR_NAMES,
)
from torch_diode.model.networks import LIBRARY
from torch_diode.types.errors import FileFaultError
from torch_diode.types.problem import LAYOUTS, OPS
from torch_diode.types.validation import SLUG

if TYPE_CHECKING:
    from torch_diode.model.evaluation.scoring import Evaluation
    from torch_diode.model.features.problem_arrays import ProblemArrays
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.networks.library_model import Network
    from torch_diode.model.training.options import Trained
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.hardware import Hardware

SUFFIXES = (".pt", ".safetensors")
FORMAT = "torch-diode model"
FORMAT_VERSION = 1
_FEATURES = (*FEATURE_NAMES, *VENDOR_NAMES, *SPLIT_NAMES)
SWEEP = "sweep"
"""Method of timings whose kernels take their sizes as arguments; `options` names a model's
methods, and a file that names none was made from these."""
CLEAN = (SWEEP, "feedback-clean")
"""Methods of timings without the launch, which ATen and Triton pay differently."""
_MAX_WIDTH = 4096
_SHAPE_NAMES = {"hidden", "layers", "aten_hidden", "aten_layers", "aten_members", "encoder"}
_LIBRARY_SHAPE_NAMES = {"hidden", "layers", "members", "labels"}
_CPU_FIELDS = ("threads", "labels")
"""Fields of CPUs only: a file of a GPU's model has none of them."""
_GPU_OPTIONS = ("aten_", "split_", "far", "near", "floor")
_OLDEST_HEAD = {"aten_layers": 2, "aten_members": 6}
"""Shape of ATen's head in the first files, which do not state it."""
_PROVENANCE = ("source", "collected", "timed_by")
CONFIG_COLUMNS = ("block_m", "block_n", "block_k", "num_stages", "num_warps")
_SUMMARY_SLICES = ("all", "op=", "precision=")
WORSE_THAN_ATEN = "worse_than_aten"
"""Key in `scores` of the operations and precisions in which ATen alone was better on the problems
held out."""


@dataclass(frozen=True)
class ModelMetadata:
    """Plain values only: a model file holds these and tensors, and no code."""

    kind: str
    shape: dict[str, int]
    hardware: str
    arch: str
    covers: list[str]
    """`MMShape.kind` of the problems in training; on a CPU with `/layout`."""
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
    threads: list[int] = field(default_factory=list)
    """Numbers of threads in training, on a CPU."""
    labels: list[str] = field(default_factory=list)
    """Candidates of the outputs of a `library` network."""
    decides_alone: list[str] = field(default_factory=list)
    """Hardware on which its first choice may run unbenchmarked; elsewhere it shortlists."""
    configs: dict[str, Any] = field(default_factory=dict)
    """By template the configs in training, as `CONFIG_COLUMNS`, if they are a short list such as
    autotuning's: it predicts no others. Empty where they are of the whole candidate space."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Source of the timings, their dates and how they were made."""
    format: str = FORMAT
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """Encode as one line with sorted keys: equal metadata give equal text."""
        data = asdict(self)
        for name in _CPU_FIELDS:
            if not data[name]:
                del data[name]
        return json.dumps(data, sort_keys=True)

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
        data = {**{name: [] for name in _CPU_FIELDS}, **data}
        # The first files do not state it; they are of sweeps.
        data = {"decides_alone": [data.get("hardware")], "configs": {}, "provenance": {}, **data}
        _check_fields(cls, data, source)
        oldest = {} if data["kind"] == LIBRARY else _OLDEST_HEAD
        return cls(**{**data, "shape": {**oldest, **data["shape"]}})


def features_of(kind: object) -> tuple[int, tuple[str, ...]]:
    """The version and the names of the features that a kind of network reads."""
    return (CPU_FEATURES_VERSION, CPU_NAMES) if kind == LIBRARY else (FEATURES_VERSION, _FEATURES)


def _check_features(data: Mapping[str, Any], source: str) -> None:
    version, names = features_of(data.get("kind"))
    if data.get("features_version") != version:
        raise FileFaultError(
            f"{source}: got features version {data.get('features_version')!r:.20}; expected "
            f"{version}; train the model again, or use the release it was made with"
        )
    if data.get("feature_names") != list(names):
        raise FileFaultError(
            f"{source}: got other features than version {version} has; train again"
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
    if not re.fullmatch(SLUG, data["hardware"]):
        raise FileFaultError(
            f"{source}: got {data['hardware']!r:.40} as hardware; expected a name such as "
            "nvidia-h200"
        )
    unknown = set(data) - {known.name for known in fields(cls)}
    if unknown:
        raise FileFaultError(f"{source}: got unknown metadata {min(unknown)!r:.40}; expected none")
    names = _LIBRARY_SHAPE_NAMES if data["kind"] == LIBRARY else _SHAPE_NAMES
    for name, width in data["shape"].items():
        if name not in names or type(width) is not int or not 0 < width <= _MAX_WIDTH:
            raise FileFaultError(
                f"{source}: got shape {name!r:.40} = {width!r:.20}; expected "
                f"{', '.join(sorted(names))}, 1 to {_MAX_WIDTH}"
            )
    _check_numbers(data, source)
    _check_configs(data, source)


def _check_numbers(data: Mapping[str, Any], source: str) -> None:
    for name, ends in data["ranges"].items():
        numbers = isinstance(ends, list) and all(isinstance(x, int | float) for x in ends)
        if not numbers or len(ends) != 2:
            raise FileFaultError(f"{source}: got range {name!r:.20} = {ends!r:.40}; expected two")
    for key in ("methods", "ops"):
        names = data["options"].get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise FileFaultError(f"{source}: got {key} {names!r:.40}; expected a list of names")
    if not all(type(count) is int and count > 0 for count in data["threads"]):
        raise FileFaultError(f"{source}: got threads {data['threads']!r:.40}; expected numbers")
    labels = data["labels"]
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
        raise FileFaultError(f"{source}: got labels {labels!r:.60}; expected distinct texts")
    if len(labels) != data["shape"].get("labels", 0) or (not labels and data["kind"] == LIBRARY):
        raise FileFaultError(
            f"{source}: got {len(labels)} labels; expected {data['shape'].get('labels', 0)}, one "
            "per output"
        )
    if not all(isinstance(value, int | float) for value in data["sigma"].values()):
        raise FileFaultError(f"{source}: got sigma {data['sigma']!r:.60}; expected numbers")


def _check_configs(data: Mapping[str, Any], source: str) -> None:
    for template, configs in data["configs"].items():
        if not isinstance(configs, list) or not all(map(_is_config, configs)):
            raise FileFaultError(
                f"{source}: got configs {configs!r:.40} of {template!r:.40}; expected lists of "
                + ", ".join(CONFIG_COLUMNS)
            )


def _is_config(values: object) -> bool:
    """True for five numbers of a size that packs into a key."""
    if not isinstance(values, list) or len(values) != len(CONFIG_COLUMNS):
        return False
    return all(type(value) is int and 0 <= value <= _MAX_WIDTH for value in values)


def build_metadata(
    trained: Trained[Network],
    part: FeatureTable,
    dataset: Dataset,
    hardware: Hardware,
    evaluation: Evaluation,
) -> ModelMetadata:
    """Build the metadata of a model trained on `part` of a dataset, with its scores on held-out
    problems."""
    p = part.arrays.take(np.unique(part.group[part.is_config]))
    errors = evaluation.errors
    is_library = trained.network.kind == LIBRARY
    version, names = features_of(trained.network.kind)
    options = json.loads(json.dumps(asdict(trained.options)))
    if is_library:
        options = {k: v for k, v in options.items() if not k.startswith(_GPU_OPTIONS)}
    return ModelMetadata(
        kind=trained.network.kind,
        shape=dict(trained.network.shape),
        hardware=hardware.name,
        arch=hardware.arch,
        covers=_covers(p, with_layout=is_library),
        ranges=_ranges(p),
        torch=[release for release in dataset.texts("torch") if release],
        triton=[release for release in dataset.texts("triton") if release],
        dataset_digest=dataset.digest,
        sigma={
            name: round(errors.get(part_name, {}).get("rmse", 0.5), 4)
            for name, part_name in (("configs", "near"), ("aten", "aten"))
        },
        scores={
            **{
                name: {f"regret@{score.k}": round(score.geomean, 5) for score in scores}
                for name, scores in evaluation.model.items()
                if _is_summary(name)
            },
            WORSE_THAN_ATEN: [name for name in evaluation.worse if _is_summary(name)],
        },
        options={**options, "methods": dataset.texts("method"), "ops": dataset.texts("op")},
        template_hashes=list(dataset.provenance.get("templates", ())),
        features_version=version,
        feature_names=list(names),
        threads=sorted({int(count) for count in p.threads if count}),
        labels=list(getattr(trained.network, "labels", ())),
        decides_alone=[hardware.name] if {*CLEAN} & {*dataset.texts("method")} else [],
        configs={} if SWEEP in dataset.texts("method") else _configs(dataset, part.rows),
        provenance={n: list(dataset.provenance[n]) for n in _PROVENANCE if n in dataset.provenance},
    )


def _is_summary(slice_name: str) -> bool:
    return slice_name.startswith(_SUMMARY_SLICES) and "," not in slice_name


def _configs(dataset: Dataset, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
    """By template, the distinct configs of these rows."""
    candidates = dataset.candidates(rows)
    values = np.stack([candidates.fields[name] for name in CONFIG_COLUMNS], axis=1)
    found = {
        name: np.unique(values[candidates.is_template(name)], axis=0).tolist()
        for name in candidates.templates
        if name.startswith("triton::")
    }
    return {name: configs for name, configs in found.items() if configs}


def _covers(p: ProblemArrays, with_layout: bool) -> list[str]:
    """List the kinds of problems, and on a CPU their layouts: there they are other kernels."""
    layout = 2 * p.transpose_a + p.transpose_b if with_layout else np.zeros(len(p))
    kinds = np.unique(np.stack([p.op, p.precision, layout], axis=1), axis=0).astype(int).tolist()
    return [
        f"{OPS[op]}/{PRECISIONS[precision]}" + (f"/{LAYOUTS[layout]}" if with_layout else "")
        for op, precision, layout in kinds
        if precision < len(PRECISIONS)
    ]


def _ranges(p: ProblemArrays) -> dict[str, list[float]]:
    values = {"M": p.M, "N": p.N, "K": p.K, "B": p.B, "flops": 2 * p.B * p.M * p.N * p.K}
    return {name: [float(v.min()), float(v.max())] for name, v in values.items()}
