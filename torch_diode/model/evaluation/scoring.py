"""Predictions of a network on a table, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from torch_diode.model.evaluation.regret import (
    KS,
    Ids,
    Mask,
    RankedTimes,
    Score,
    Times,
    problem_slices,
    regret_arrays,
    scores,
    sliced_scores,
    time_error,
)
from torch_diode.model.networks import MAX_LOG_RATIO
from torch_diode.model.networks.library_model import LibraryTimingModel
from torch_diode.model.training.batches import ProblemBatches, aten_calls, split_calls
from torch_diode.types.errors import EmptySelectionError

if TYPE_CHECKING:
    from torch_diode.model.evaluation.over_plain import OverPlain
    from torch_diode.model.features.problem_arrays import Floats
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.networks.library_model import Network

_PROBLEMS_AT_ONCE = 256
_NEAR = 1.5
"""Times the best, up to which a config is near it."""
_SHIFTS = np.arange(-16, 17) / 100


Slices = dict[str, list[Score]]


@dataclass(frozen=True)
class Evaluation:
    """Scores by slice of the model and of baselines, and the error of the times.

    `aten` is ATen alone: one score per slice, over the problems where ATen was timed; empty if it
    never was. `baselines` are others, by name.
    """

    model: Slices
    aten: Slices
    errors: dict[str, dict[str, float]]
    baselines: dict[str, Slices] = field(default_factory=dict)
    noise: list[float] = field(default_factory=list)
    worse: tuple[str, ...] = ()
    """Slices in which ATen alone has less regret, on the same problems."""
    over_plain: dict[str, dict[str, OverPlain]] = field(default_factory=dict)
    """On a CPU, decisions over plain torch's, by what a compile offers and slice."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        over_plain = {
            offer: {name: summary.to_dict() for name, summary in slices.items()}
            for offer, slices in self.over_plain.items()
        }
        return {
            **({"over_plain": over_plain} if over_plain else {}),
            "model": _listed(self.model),
            "aten": _listed(self.aten),
            "baselines": {name: _listed(slices) for name, slices in self.baselines.items()},
            "errors": {
                part: {name: _rounded(value) for name, value in errors.items()}
                for part, errors in self.errors.items()
            },
            "noise": [_rounded(value) for value in self.noise],
            "worse_than_aten": list(self.worse),
        }


def _listed(slices: Slices) -> dict[str, list[dict[str, float]]]:
    return {
        name: [{key: _rounded(value) for key, value in s.to_dict().items()} for s in listed]
        for name, listed in slices.items()
    }


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else round(value, 5)


def predict_log_ratio(
    network: Network,
    table: FeatureTable,
    batches: ProblemBatches | None = None,
    problems_at_once: int = _PROBLEMS_AT_ONCE,
) -> Floats:
    """Predict log(time / roofline) of each row of the table; beyond all others for a candidate that
    a `library` network does not know."""
    if isinstance(network, LibraryTimingModel):
        return _predict_labels(network, table, problems_at_once)
    batches = batches or ProblemBatches(table)
    predicted = np.empty(len(table.group), np.float32)
    network.eval()
    with torch.no_grad():
        for batch in batches.draw(problems_at_once):
            out = network(batch.problem, batch.config, batch.group)
            predicted[batch.rows] = out.cpu().numpy()
        for head, calls in (
            (network.aten, aten_calls(table, batches.device)),
            (network.split, split_calls(table, batches.device)),
        ):
            predicted[calls.rows] = head(calls.problem, calls.call).cpu().numpy()
    return predicted


def _predict_labels(
    network: LibraryTimingModel, table: FeatureTable, problems_at_once: int
) -> Floats:
    network.eval()
    numbers, place = np.unique(table.group, return_inverse=True)
    problems = torch.from_numpy(table.problem[numbers])
    with torch.no_grad():
        parts = [network(part).mean(0) for part in problems.split(problems_at_once)]
    column = columns_of(network.labels, table)
    predicted = torch.cat(parts).numpy()[place.reshape(-1), column]
    return np.asarray(np.where(column < 0, np.float32(MAX_LOG_RATIO), predicted))


def columns_of(labels: Sequence[str], table: FeatureTable) -> Ids:
    """Position of each row's label among these; -1 where it is none of them."""
    places = {label: place for place, label in enumerate(labels)}
    return np.array([places.get(label, -1) for label in table.labels], np.int64)[table.label]


def predict_times(
    network: Network, table: FeatureTable, problems_at_once: int = _PROBLEMS_AT_ONCE
) -> Floats:
    """Predict the microseconds of each row of the table."""
    ratio = predict_log_ratio(network, table, problems_at_once=problems_at_once)
    with np.errstate(over="ignore"):  # of a network that diverged
        return np.asarray(np.exp(ratio) * table.roofline[table.group])


def with_over_plain(
    evaluated: EvaluatedPredictions, over_plain: dict[str, dict[str, OverPlain]]
) -> EvaluatedPredictions:
    """The same with decisions over plain torch's."""
    return replace(evaluated, evaluation=replace(evaluated.evaluation, over_plain=over_plain))


def regret_scores(table: FeatureTable, predicted: Times) -> list[Score]:
    """Regret@k over a table's problems that have a choice."""
    return scores(RankedTimes.by(table.group, predicted).with_choice().regrets(table.time_us))


def best_shift(table: FeatureTable, log_ratio: Floats) -> float:
    """Shift of ATen's log time with the least regret@1 (see `VendorHead`): the smallest within a
    standard error of the best, and so most often none."""
    log_regrets = []
    for shift in _SHIFTS:
        moved = np.where(table.is_aten, log_ratio + shift, log_ratio)
        log_regrets.append(np.log(regret_arrays(table.group, table.time_us, moved, (1,))[1][:, 0]))
    regrets = np.array(log_regrets)
    worse = regrets - regrets[np.argmin(regrets.mean(axis=1))]
    error = worse.std(axis=1) / np.sqrt(max(worse.shape[1], 1))
    good = _SHIFTS[worse.mean(axis=1) <= error]
    return float(good[np.argmin(np.abs(good))])


@dataclass(frozen=True, eq=False)
class EvaluatedPredictions:
    """Predictions for a table's rows, compared with the measured times."""

    table: FeatureTable
    predicted: Times
    ranked: RankedTimes
    regrets: npt.NDArray[np.float64]
    """One row per problem, one column per k."""
    evaluation: Evaluation

    @property
    def problems(self) -> Ids:
        """Numbers of the scored problems: those with a choice."""
        return self.table.group[self.ranked.first]

    def worst_decisions(self, count: int) -> list[tuple[int, int]]:
        """Rows of the chosen and of the best candidate, for the problems of the greatest regret@1,
        worst first."""
        best = RankedTimes.by(self.table.group, self.table.time_us).with_choice().first
        worst = np.argsort(-self.regrets[:, 0], kind="stable")[:count]
        chosen = self.ranked.first
        return [(int(chosen[i]), int(best[i])) for i in worst]

    def worst_predictions(self, count: int) -> list[int]:
        """Rows of the table whose predicted time is furthest off, worst first."""
        error = np.abs(np.log(self.predicted / self.table.time_us))
        return [int(i) for i in np.argsort(-error, kind="stable")[:count]]


def evaluate_predictions(
    table: FeatureTable,
    predicted: Times,
    baselines: Mapping[str, npt.NDArray[np.float64]] | None = None,
    noise: list[float] | None = None,
    ks: Sequence[int] = KS,
) -> EvaluatedPredictions:
    """Score predictions for a table's rows.

    A baseline is a column of regrets, or one per k, by problem number; NaN where it is undefined.
    """
    ranked = RankedTimes.by(table.group, predicted).with_choice()
    if not len(ranked.starts):
        raise EmptySelectionError(
            "scores: got problems with one candidate each; expected several to choose from; "
            "collect Triton configs too"
        )
    ids, values = table.group[ranked.first], ranked.regrets(table.time_us, ks)
    slices = problem_slices(table.arrays.take(ids), table.roofline[ids])
    alone = table.subset_regrets(table.is_aten)[ids]
    references: dict[str, Slices] = {}
    others = {name: regrets[ids] for name, regrets in (baselines or {}).items()}
    for name, regrets in {"aten": alone, **others}.items():
        columns = regrets.reshape(len(ids), -1)
        known = np.isfinite(columns).all(axis=1)
        if known.any():
            masks = {slice_name: mask[known] for slice_name, mask in slices.items()}
            references[name] = sliced_scores(columns[known], masks, ks[: columns.shape[1]])
    evaluation = Evaluation(
        sliced_scores(values, slices, ks),
        references.pop("aten", {}),
        _errors(table, predicted),
        references,
        noise or [],
        _where_worse(values[:, 0], alone, slices),
    )
    return EvaluatedPredictions(table, predicted, ranked, values, evaluation)


def _errors(table: FeatureTable, predicted: Times) -> dict[str, dict[str, float]]:
    close = table.is_config & (table.time_us < _NEAR * table.best_times()[table.group])
    parts = {
        "all": np.ones(len(close), bool),
        "configs": table.is_config,
        "near": close,
        "aten": table.is_aten,
    }
    return {
        name: vars(time_error(table.time_us[mask], predicted[mask]))
        for name, mask in parts.items()
        if mask.any()
    }


def _where_worse(
    model: npt.NDArray[np.float64], alone: npt.NDArray[np.float64], slices: Mapping[str, Mask]
) -> tuple[str, ...]:
    loss = np.log(model) - np.log(alone)
    known = np.isfinite(loss)
    every = {"all": np.ones(len(loss), bool), **slices}
    return tuple(
        name
        for name, mask in every.items()
        if (mask & known).any() and loss[mask & known].mean() > 0
    )
