"""A network's predictions on a table, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
    subset_regrets,
    time_error,
)
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.features.table import FeatureTable
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.training.batches import ProblemBatches, aten_calls, split_calls
from torch_diode.types.errors import EmptySelectionError

_PROBLEMS_AT_ONCE = 256
_SHIFTS = np.arange(-16, 17) / 100


Slices = dict[str, list[Score]]


@dataclass(frozen=True)
class Evaluation:
    """Scores by slice, for the model and for what it is held against; and the error of the times.

    `aten` is ATen alone: one score a slice, over the problems where ATen was timed, and none at
    all where it never was. `baselines` are others that know or try something, by name.
    """

    model: Slices
    aten: Slices
    errors: dict[str, dict[str, float]]
    baselines: dict[str, Slices] = field(default_factory=dict)
    noise: list[float] = field(default_factory=list)
    worse: tuple[str, ...] = ()
    """The slices in which ATen alone would have been the better answer, on the same problems."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "model": _listed(self.model),
            "aten": _listed(self.aten),
            "baselines": {name: _listed(found) for name, found in self.baselines.items()},
            "errors": {
                part: {name: _rounded(value) for name, value in found.items()}
                for part, found in self.errors.items()
            },
            "noise": [_rounded(value) for value in self.noise],
            "worse_than_aten": list(self.worse),
        }


def _listed(slices: Slices) -> dict[str, list[dict[str, float]]]:
    return {
        name: [{key: _rounded(value) for key, value in s.to_dict().items()} for s in found]
        for name, found in slices.items()
    }


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else round(value, 5)


def predict_log_ratio(
    network: TimingNetwork,
    table: FeatureTable,
    batches: ProblemBatches | None = None,
    problems_at_once: int = _PROBLEMS_AT_ONCE,
) -> Floats:
    """log(time / roofline) for each row of the table."""
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


def predict_times(
    network: TimingNetwork, table: FeatureTable, problems_at_once: int = _PROBLEMS_AT_ONCE
) -> Floats:
    """Microseconds for each row of the table."""
    ratio = predict_log_ratio(network, table, problems_at_once=problems_at_once)
    with np.errstate(over="ignore"):  # of a network that ran away
        return np.asarray(np.exp(ratio) * table.roofline[table.group])


def regret_scores(table: FeatureTable, predicted: Times) -> list[Score]:
    """Regret@k over all of a table's problems that have a choice."""
    return scores(RankedTimes.by(table.group, predicted).with_choice().regrets(table.time_us))


def best_shift(table: FeatureTable, log_ratio: Floats) -> float:
    """What to add to ATen's log time for the least regret@1 (see `VendorHead`): the smallest shift
    that the problems cannot tell from the best one, by a standard error, and so most often none."""
    found = []
    for shift in _SHIFTS:
        moved = np.where(table.is_aten, log_ratio + shift, log_ratio)
        found.append(np.log(regret_arrays(table.group, table.time_us, moved, (1,))[1][:, 0]))
    regrets = np.array(found)
    worse = regrets - regrets[np.argmin(regrets.mean(axis=1))]
    error = worse.std(axis=1) / np.sqrt(max(worse.shape[1], 1))
    good = _SHIFTS[worse.mean(axis=1) <= error]
    return float(good[np.argmin(np.abs(good))])


@dataclass(frozen=True, eq=False)
class EvaluatedPredictions:
    """Predictions for a table's rows, held against what was measured."""

    table: FeatureTable
    predicted: Times
    ranked: RankedTimes
    regrets: npt.NDArray[np.float64]
    """A row for each problem met, one column a k."""
    evaluation: Evaluation

    @property
    def problems(self) -> Ids:
        """The numbers of the problems that were judged: those with a choice."""
        return self.table.group[self.ranked.first]

    def worst_decisions(self, count: int) -> list[tuple[int, int]]:
        """Rows of the table: what was chosen and what would have been best, for the problems of
        the greatest regret@1, worst first."""
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
    near: float = 1.5,
    ks: Sequence[int] = KS,
) -> EvaluatedPredictions:
    """All there is to say about predictions for a table's rows.

    A baseline is a column of regrets, or one for each k, by problem number; NaN where it has
    nothing to say.
    """
    ranked = RankedTimes.by(table.group, predicted).with_choice()
    if not len(ranked.starts):
        raise EmptySelectionError(
            "scores: got problems with one candidate each; expected several to choose from; "
            "collect Triton configs too"
        )
    ids, values = table.group[ranked.first], ranked.regrets(table.time_us, ks)
    slices = problem_slices(table.arrays.take(ids), table.roofline[ids])
    alone = subset_regrets(table.group, table.time_us, table.is_aten)[ids]
    held: dict[str, Slices] = {}
    for name, found in {"aten": alone, **_at(baselines or {}, ids)}.items():
        column = found.reshape(len(ids), -1)
        known = np.isfinite(column).all(axis=1)
        if known.any():
            cut = {slice_: mask[known] for slice_, mask in slices.items()}
            held[name] = sliced_scores(column[known], cut, ks[: column.shape[1]])
    evaluation = Evaluation(
        sliced_scores(values, slices, ks),
        held.pop("aten", {}),
        _errors(table, predicted, near),
        held,
        noise or [],
        _where_worse(values[:, 0], alone, slices),
    )
    return EvaluatedPredictions(table, predicted, ranked, values, evaluation)


def _at(
    baselines: Mapping[str, npt.NDArray[np.float64]], ids: Ids
) -> dict[str, npt.NDArray[np.float64]]:
    return {name: found[ids] for name, found in baselines.items()}


def _errors(table: FeatureTable, predicted: Times, near: float) -> dict[str, dict[str, float]]:
    best = np.full(len(table.problem), np.inf)
    np.minimum.at(best, table.group, table.time_us)
    close = table.is_config & (table.time_us < near * best[table.group])
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
