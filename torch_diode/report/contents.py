"""Everything a report shows, as plain data: what the page's script draws from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode import __version__
from torch_diode.model.evaluation.regret import (
    Score,
    problem_slices,
    scores,
    sliced_scores,
    time_error,
)
from torch_diode.model.metadata import ModelMetadata
from torch_diode.report.packing import encoded, pack
from torch_diode.report.predictions import Flags, Floats, PredictedTimings
from torch_diode.report.regret import KS, Regrets
from torch_diode.types.dataset import Dataset

SHOWN_KS = (1, 3, 5, 10, 20)
WORST = 50
BINS = 96
NEAR = 1.5


@dataclass(frozen=True)
class Sources:
    """What a report is made from, as it names them."""

    dataset_name: str
    dataset: Dataset
    model_name: str
    model: ModelMetadata
    scored_how: str
    """One sentence on which problems the scores are of."""


def contents(
    sources: Sources, timings: PredictedTimings, scored: Flags, regrets: Regrets
) -> dict[str, Any]:
    """All of a page's data."""
    return {
        "about": _about(sources, timings, regrets),
        "summary": _summary(regrets),
        "curves": _curves(regrets),
        "density": _density(timings, scored),
        "worst": _worst(timings, regrets),
        "slices": _slices(timings, regrets),
        "lookup": pack(timings, scored),
    }


def _about(sources: Sources, timings: PredictedTimings, regrets: Regrets) -> dict[str, Any]:
    data, model = sources.dataset, sources.model
    return {
        "version": __version__,
        "dataset": sources.dataset_name,
        "hardware": ", ".join(data.texts("hardware")),
        "timings": len(data),
        "used": len(timings.measured),
        "problems": len(timings),
        "alone": timings.alone,
        "scored": len(regrets.problems),
        "scored_how": sources.scored_how,
        "digest": data.digest,
        "torch": [text for text in data.texts("torch") if text],
        "triton": [text for text in data.texts("triton") if text],
        "model": sources.model_name,
        "model_kind": model.kind,
        "model_hardware": model.hardware,
        "model_torch": model.torch,
        "abstained": [{"reason": r, "problems": n} for r, n in timings.reasons.items()],
    }


def _summary(regrets: Regrets) -> dict[str, Any]:
    first = regrets.model[:, 0]
    both = np.isfinite(regrets.aten)
    ratio = first[both] / regrets.aten[both]
    return {
        "within_2": float((first <= 1.02).mean()),
        "within_5": float((first <= 1.05).mean()),
        "slower_than_aten_5": float((ratio > 1.05).mean()) if both.any() else None,
        "over_aten": _geomean(ratio),
        "aten_best": float((regrets.aten[both] <= 1.0).mean()) if both.any() else None,
    }


def _curves(regrets: Regrets) -> dict[str, Any]:
    told = np.isfinite(regrets.analytical[:, 0])
    analytical = scores(regrets.analytical[told], KS)
    return {
        "ks": list(KS),
        "model": [_score(score) for score in scores(regrets.model, KS)],
        "noise": [_geomean(column) for column in regrets.noise.T],
        "analytical": [_score(score) for score in analytical] or None,
        "aten": _geomean(regrets.aten),
        "default": _geomean(regrets.default),
        "default_coverage": round(regrets.coverage, 4),
        "default_fault": regrets.default_fault,
    }


def _score(score: Score) -> dict[str, float]:
    return {name: round(value, 6) for name, value in score.to_dict().items()}


def _geomean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return round(float(np.exp(np.log(known).mean())), 6) if len(known) else None


def _density(timings: PredictedTimings, scored: Flags) -> dict[str, Any]:
    """Predicted against measured as counts over a grid of log times, for several parts."""
    keep = scored[timings.group]
    measured, predicted = timings.measured[keep], timings.predicted[keep]
    best = np.minimum.reduceat(timings.measured, timings.starts[:-1])[timings.group][keep]
    aten = timings.is_aten[keep]
    # The scale is the measured times'; a prediction far off it is counted at the edge.
    low, high = np.log(measured.min()) - 0.02, np.log(measured.max()) + 0.02
    parts = {
        "all candidates": np.ones(len(measured), bool),
        f"within {NEAR:g}× of the best": measured < NEAR * best,
        "ATen": aten,
        "Triton": ~aten,
    }
    return {
        "bins": BINS,
        "low": float(low),
        "high": float(high),
        "parts": [
            {
                "name": name,
                "error": vars(time_error(measured[mask], predicted[mask])),
                "counts": _grid(measured[mask], predicted[mask], low, high),
            }
            for name, mask in parts.items()
            if mask.any()
        ],
    }


def _grid(measured: Floats, predicted: Floats, low: float, high: float) -> str:
    """Counts by row (predicted, from the lowest) and column (measured), as 32-bit numbers."""
    places = []
    for times in (predicted, measured):
        place = (np.log(times) - low) / (high - low) * BINS
        places.append(np.clip(place.astype(np.int64), 0, BINS - 1))
    counts = np.bincount(places[0] * BINS + places[1], minlength=BINS * BINS)
    return encoded(counts.astype("<u4"))


def _worst(timings: PredictedTimings, regrets: Regrets) -> list[dict[str, Any]]:
    """The decisions that cost most, the worst first."""
    order = np.argsort(-regrets.model[:, 0], kind="stable")[:WORST]
    return [
        _decision(timings, int(regrets.problems[place]), float(regrets.model[place, 0]))
        for place in order
        if regrets.model[place, 0] > 1.0
    ]


def _decision(timings: PredictedTimings, number: int, regret: float) -> dict[str, Any]:
    rows = timings.rows_of(number)
    measured, predicted = timings.measured[rows], timings.predicted[rows]
    aten = np.flatnonzero(timings.is_aten[rows])
    places: Mapping[str, int | None] = {
        "pick": int(np.argmin(predicted)),
        "best": int(np.argmin(measured)),
        "aten": int(aten[np.argmin(measured[aten])]) if len(aten) else None,
    }
    entry: dict[str, Any] = {"problem": timings.problems[number].key, "regret": round(regret, 4)}
    for name, place in places.items():
        if place is None:
            entry[name] = None
            continue
        row = rows.start + place
        entry[name] = {
            "candidate": str(timings.candidates[row]),
            "measured": round(float(measured[place]), 3),
            "predicted": round(float(predicted[place]), 3),
            "error": round(float(timings.errors[row]), 4),
        }
    return entry


def _slices(timings: PredictedTimings, regrets: Regrets) -> list[dict[str, Any]]:
    arrays = timings.arrays.take(regrets.problems)
    masks = problem_slices(arrays, timings.roofline[regrets.problems])
    columns = [KS.index(k) for k in SHOWN_KS]
    found = sliced_scores(regrets.model[:, columns], masks, SHOWN_KS)
    everything: npt.NDArray[np.bool_] = np.ones(len(regrets.problems), bool)
    listed = []
    for name, model in found.items():
        mask = masks.get(name, everything)
        listed.append(
            {
                "name": name,
                "problems": model[0].problems,
                **{f"at_{score.k}": round(score.geomean, 5) for score in model},
                "p95": round(model[0].p95, 4),
                "max": round(model[0].max, 4),
                "noise": _geomean(regrets.noise[mask, 0]),
                "aten": _geomean(regrets.aten[mask]),
                "default": _geomean(regrets.default[mask]),
                "analytical": _geomean(regrets.analytical[mask, 0]),
            }
        )
    return listed
