"""Where a trained model comes from, gathered for its file and its card."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from torch_diode.model.evaluation.regret import noise_floor, standard_errors
from torch_diode.model.evaluation.scoring import Evaluation
from torch_diode.model.features.names import PRECISIONS
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.table import FeatureTable
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.training.trainer import Trained
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import OPS

_KEPT_SLICES = ("all", "op=", "precision=")


def describe(
    trained: Trained, part: FeatureTable, dataset: Dataset, hardware: Hardware, found: Evaluation
) -> ModelMetadata:
    """The metadata of a model trained on `part` of a dataset, with its scores on held-out
    problems."""
    p = part.arrays.take(np.unique(part.group[part.is_config]))
    pairs = np.unique(np.stack([p.op, p.precision], axis=1), axis=0).tolist()
    covers = [f"{OPS[o]}/{PRECISIONS[n]}" for o, n in pairs if n < len(PRECISIONS)]
    errors = found.errors
    return ModelMetadata(
        kind=trained.network.kind,
        shape=dict(trained.network.shape),
        hardware=hardware.name,
        arch=hardware.arch,
        covers=covers,
        ranges=_ranges(p),
        torch=dataset.texts("torch"),
        triton=dataset.texts("triton"),
        dataset_digest=dataset.digest,
        sigma={
            "configs": round(errors.get("near", {}).get("rmse", 0.5), 4),
            "aten": round(errors.get("aten", {}).get("rmse", 0.5), 4),
        },
        scores=_short(found),
        options={
            **json.loads(json.dumps(asdict(trained.options))),
            "methods": dataset.texts("method"),
            "ops": dataset.texts("op"),
        },
        template_hashes=list(dataset.provenance.get("templates", ())),
    )


def card(metadata: ModelMetadata, found: Evaluation) -> dict[str, Any]:
    """What stands beside a model file for people to read: all scores, and the noise in them."""
    data: dict[str, Any] = json.loads(metadata.to_json())
    del data["feature_names"], data["scores"]
    return {**data, "held_out": found.to_dict()}


def dataset_noise_floor(table: FeatureTable, dataset: Dataset) -> list[float]:
    """The regret@k that noise alone gives on a table's rows."""
    spread, repeats = (dataset.values(name)[table.rows] for name in ("spread", "repeats"))
    errors = standard_errors(spread, repeats, table.time_us)
    return noise_floor(table.group, table.time_us, errors)


def _ranges(p: ProblemArrays) -> dict[str, list[float]]:
    values = {"M": p.M, "N": p.N, "K": p.K, "B": p.B, "flops": 2 * p.B * p.M * p.N * p.K}
    return {name: [float(v.min()), float(v.max())] for name, v in values.items()}


def _short(found: Evaluation) -> dict[str, Any]:
    return {
        name: {f"regret@{score.k}": round(score.geomean, 5) for score in listed}
        for name, listed in found.model.items()
        if name.startswith(_KEPT_SLICES) and "," not in name
    }
