"""Everything a report shows, as plain data for the page's script to draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_diode import __version__
from torch_diode.model.evaluation.regret import Score, problem_slices, time_error
from torch_diode.report.packing import encoded, pack
from torch_diode.report.predictions import Floats, PredictedTimings
from torch_diode.toolkit.baselines import ANALYTICAL, DEFAULT_LIST

if TYPE_CHECKING:
    from torch_diode.model.evaluation.holdout import HoldoutSelection
    from torch_diode.toolkit.validate import Validation

CURVE_KS = tuple(range(1, 21))
SHOWN_KS = (1, 3, 5, 10, 20)
WORST = 50
BINS = 96
NEAR = 1.5


def contents(validation: Validation, dataset_name: str, model_name: str) -> dict[str, Any]:
    """All data of a page, from a validation with `CURVE_KS` and the names to show."""
    timings = PredictedTimings.of(validation)
    return {
        "about": {"dataset": dataset_name, "model": model_name, **_about(validation, timings)},
        "summary": _summary(validation),
        "curves": _curves(validation),
        "density": _density(timings),
        "worst": _worst(validation, timings),
        "slices": _slices(validation),
        "lookup": pack(timings),
    }


def _about(validation: Validation, timings: PredictedTimings) -> dict[str, Any]:
    data, model = validation.dataset, validation.metadata
    scored = len(validation.evaluated.problems)
    return {
        "version": __version__,
        "hardware": ", ".join(data.texts("hardware")),
        "timings": len(data),
        "used": len(timings.measured),
        "problems": len(timings),
        "alone": len(np.unique(validation.table.group)) - len(timings),
        "scored": scored,
        "scored_how": _scored_how(validation.holdout, validation.scored_on),
        "digest": data.digest,
        "torch": [text for text in data.texts("torch") if text],
        "triton": [text for text in data.texts("triton") if text],
        "model_kind": model.kind,
        "model_hardware": model.hardware,
        "model_torch": model.torch,
        "abstained": [{"reason": r, "problems": n} for r, n in validation.abstained.items()],
    }


def _scored_how(holdout: HoldoutSelection, scored_on: str) -> str:
    text = f"Scores are of {scored_on}"
    if holdout.trained_on_data:
        return text + (": they flatter it." if holdout.are_all else ".")
    return f"{text}. The model was not trained on this dataset as a whole."


def _aten_regrets(validation: Validation) -> Floats:
    table, ids = validation.evaluated.table, validation.evaluated.problems
    return table.subset_regrets(table.is_aten)[ids]


def _summary(validation: Validation) -> dict[str, Any]:
    first, aten = validation.evaluated.regrets[:, 0], _aten_regrets(validation)
    both = np.isfinite(aten)
    ratio = first[both] / aten[both]
    return {
        "within_2": float((first <= 1.02).mean()),
        "within_5": float((first <= 1.05).mean()),
        "slower_than_aten_5": float((ratio > 1.05).mean()) if both.any() else None,
        "over_aten": _geomean(ratio),
        "aten_best": float((aten[both] <= 1.0).mean()) if both.any() else None,
    }


def _curves(validation: Validation) -> dict[str, Any]:
    evaluation, baselines = validation.evaluation, validation.baselines
    analytical = evaluation.baselines.get(ANALYTICAL, {}).get("all", [])
    return {
        "ks": list(CURVE_KS),
        "model": [_score(score) for score in evaluation.model["all"]],
        "noise": [_geomean(column) for column in baselines.noise.T],
        "analytical": [_score(score) for score in analytical] or None,
        "aten": _first(evaluation.aten, "all"),
        "default": _first(evaluation.baselines.get(DEFAULT_LIST, {}), "all"),
        "default_coverage": round(baselines.coverage, 4),
        "default_fault": baselines.missing_list,
    }


def _score(score: Score) -> dict[str, float]:
    return {name: round(value, 6) for name, value in score.to_dict().items()}


def _first(slices: Mapping[str, list[Score]], name: str) -> float | None:
    """Geometric mean of the regret@1 of a slice."""
    return round(slices[name][0].geomean, 6) if name in slices else None


def _geomean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return round(float(np.exp(np.log(known).mean())), 6) if len(known) else None


def _density(timings: PredictedTimings) -> dict[str, Any]:
    """Predicted against measured as counts over a grid of log times, for several parts."""
    keep = timings.scored[timings.group]
    measured, predicted = timings.measured[keep], timings.predicted[keep]
    best = np.minimum.reduceat(timings.measured, timings.starts[:-1])[timings.group][keep]
    aten = timings.is_aten[keep]
    # The scale is of the measured times; a prediction outside it is counted at the edge.
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


def _worst(validation: Validation, timings: PredictedTimings) -> list[dict[str, Any]]:
    """The decisions that cost most, the worst first."""
    numbers = np.flatnonzero(timings.scored)
    regrets = validation.evaluated.regrets[:, 0]
    order = np.argsort(-regrets, kind="stable")[:WORST]
    return [
        _decision(timings, int(numbers[place]), float(regrets[place]))
        for place in order
        if regrets[place] > 1.0
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


def _slices(validation: Validation) -> list[dict[str, Any]]:
    evaluation, ids = validation.evaluation, validation.evaluated.problems
    table = validation.evaluated.table
    masks = problem_slices(table.arrays.take(ids), table.roofline[ids])
    everything = np.ones(len(ids), bool)
    return [
        {
            "name": name,
            "problems": model[0].problems,
            **{f"at_{s.k}": round(s.geomean, 5) for s in model if s.k in SHOWN_KS},
            "p95": round(model[0].p95, 4),
            "max": round(model[0].max, 4),
            "noise": _geomean(validation.baselines.noise[masks.get(name, everything), 0]),
            "aten": _first(evaluation.aten, name),
            "default": _first(evaluation.baselines.get(DEFAULT_LIST, {}), name),
            "analytical": _first(evaluation.baselines.get(ANALYTICAL, {}), name),
        }
        for name, model in evaluation.model.items()
    ]
