"""A network's predictions on a table, and the scores that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torch_diode.model.batches import ProblemBatches
from torch_diode.model.evaluation import (
    KS,
    Score,
    Times,
    problem_slices,
    regret_arrays,
    scores,
    sliced_scores,
    time_error,
)
from torch_diode.model.feature_table import FeatureTable
from torch_diode.model.networks import TimingNetwork
from torch_diode.model.problem_arrays import Floats

_PROBLEMS_AT_ONCE = 256
_SHIFTS = np.arange(-0.16, 0.161, 0.01)


@dataclass(frozen=True)
class Evaluation:
    """Scores by slice, for the model and for ATen alone; and the error of the times."""

    model: dict[str, list[Score]]
    aten: dict[str, list[Score]]
    errors: dict[str, dict[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        sides = {"model": self.model, "aten": self.aten}
        listed = {
            side: {name: [score.to_dict() for score in found] for name, found in slices.items()}
            for side, slices in sides.items()
        }
        return {**listed, "errors": self.errors}

    def worse_than_aten(self) -> list[str]:
        """The slices in which ATen alone would have been the better answer."""
        return [name for name, s in self.model.items() if s[0].geomean > self.aten[name][0].geomean]


def predict_log_ratio(
    network: TimingNetwork, table: FeatureTable, batches: ProblemBatches | None = None
) -> Floats:
    """log(time / roofline) for each row of the table."""
    batches = batches or ProblemBatches(table)
    predicted = np.empty(len(table.group), np.float32)
    network.eval()
    with torch.no_grad():
        for batch in batches.draw(_PROBLEMS_AT_ONCE):
            out = network(batch.problem, batch.config, batch.group)
            predicted[batch.rows] = out.cpu().numpy()
        problem = torch.from_numpy(table.problem).to(batches.device)
        vendor = torch.from_numpy(table.vendor).to(batches.device)
        aten = network.aten(problem, vendor).cpu().numpy()
    predicted[table.is_aten] = aten[table.group[table.is_aten]]
    return predicted


def predict_times(network: TimingNetwork, table: FeatureTable) -> Floats:
    """Microseconds for each row of the table."""
    ratio = predict_log_ratio(network, table)
    return np.asarray(np.exp(ratio) * table.roofline[table.group])


def regret_scores(table: FeatureTable, predicted: Times) -> list[Score]:
    """Regret@k over all of a table's problems."""
    return scores(regret_arrays(table.group, table.time_us, predicted)[1])


def best_shift(table: FeatureTable, log_ratio: Floats) -> float:
    """What to add to ATen's log time for the least regret@1 (see `AtenHead`): the middle of the
    shifts that do about as well as the best."""
    found = []
    for shift in _SHIFTS:
        moved = np.where(table.is_aten, log_ratio + shift, log_ratio)
        found.append(np.log(regret_arrays(table.group, table.time_us, moved, (1,))[1]).mean())
    good = np.array(found) <= min(found) + 1e-4
    return float(_SHIFTS[good].mean())


def evaluate(table: FeatureTable, predicted: Times, near: float = 1.5) -> Evaluation:
    """All there is to say about predictions for a table's rows."""
    ids, values = regret_arrays(table.group, table.time_us, predicted)
    slices = problem_slices(table.arrays.take(ids), table.roofline[ids])
    vendor = np.where(table.is_aten, 0.0, 1.0)
    _, alone = regret_arrays(table.group, table.time_us, vendor)
    best = np.full(len(table.problem), np.inf)
    np.minimum.at(best, table.group, table.time_us)
    close = ~table.is_aten & (table.time_us < near * best[table.group])
    parts = {"configs": ~table.is_aten, "near": close, "aten": table.is_aten}
    errors = {
        name: vars(time_error(table.time_us[mask], predicted[mask]))
        for name, mask in parts.items()
        if mask.any()
    }
    return Evaluation(sliced_scores(values, slices, KS), sliced_scores(alone, slices, KS), errors)
