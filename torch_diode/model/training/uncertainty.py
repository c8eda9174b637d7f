"""Uncertainty of a network's predictions, fitted on problems it was not trained on.

An error common to all predictions of a problem changes no choice among its configs, so the error of
configs is taken about its mean over the problem; the error of ATen, and of splits of K, is relative
to that mean. Noise of the measurements is known per row and subtracted: the estimate is of the
model's own error.

Similar configs have similar errors, and what errors share changes no choice either. So the
deviation of configs is shrunk, by one factor for all problems, until the expected regret of
independent errors, which the uncertainty's users assume, matches the measured regret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from torch_diode.model.evaluation.regret import RankedTimes
from torch_diode.model.serving.expected_regret import expected_regrets

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.networks.timing_models import TimingNetwork

CONFIGS, VENDOR, SPLITS = range(3)
"""Columns of the uncertainty's output."""

_FIRST = 16
"""Configs of a problem that count, those predicted fastest: choices are made among them."""
_MAX_ERROR = 0.7
_EPOCHS = 40
_BATCH = 1024
_RATE = 5e-3
_DECAY = 1.0
"""Strong, against overfitting: a thousand problems with forty inputs."""
_DEFAULT_SIGMA = 0.3
_SHRINKS = np.linspace(0.3, 1.2, 10)
_SHRUNK_AT = (2, 4)
"""Numbers of benchmarked candidates at which expected and measured regret are compared."""
_CLEAR_NOISE = 0.01
_MIN_CLEAR = 50
_DEFAULT_SHRINK = 0.6
_BENCHMARKED = 32
_FEW = 5


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of log times, with their problem, kind, noise and weight."""

    problem: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    error: Floats
    noise: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.problem)


def errors_of(table: FeatureTable, log_ratio: Floats) -> Errors:
    """Compute the errors of predictions for a table's rows, as described above."""
    error = np.clip(log_ratio - table.target, -_MAX_ERROR, _MAX_ERROR)
    rows = first_rows(table, log_ratio, _FIRST)
    group = table.group[rows]
    count = np.maximum(np.bincount(group, minlength=len(table.problem)), 1)
    common = np.bincount(group, error[rows], len(table.problem)) / count
    several = count[group] > 1
    rows, group = rows[several], group[several]
    left = (error[rows] - common[group]) * np.sqrt(count[group] / (count[group] - 1))
    others = np.flatnonzero(~table.is_config & (count[table.group] > 1))
    kinds = np.where(table.is_aten[others], VENDOR, SPLITS)
    at = np.r_[rows, others]
    return Errors(
        table.group[at],
        np.r_[np.full(len(rows), CONFIGS), kinds].astype(np.int64),
        np.r_[left, error[others] - common[table.group[others]]].astype(np.float32),
        table.noise[at].astype(np.float32),
        np.r_[1 / count[group], np.ones(len(others))].astype(np.float32),
    )


def first_rows(table: FeatureTable, log_ratio: Floats, count: int) -> npt.NDArray[np.int64]:
    """Select the rows of each problem's configs that are predicted fastest."""
    rows = np.flatnonzero(table.is_config)
    ranked = RankedTimes.by(table.group[rows], log_ratio[rows])
    return np.asarray(rows[ranked.order[ranked.place < count]])


def fit_uncertainty(
    network: TimingNetwork, table: FeatureTable, log_ratio: Floats, seed: int = 0
) -> None:
    """Fit a network's uncertainty in place, on problems it was not trained on: by the likelihood of
    the errors, and then by the regret."""
    _fit_deviations(network, table, log_ratio, seed)
    shrink = _shrink(table, log_ratio, row_uncertainties(network, table))
    with torch.no_grad():
        network.uncertainty.second.bias[CONFIGS] += float(np.log(shrink))


def _fit_deviations(
    network: TimingNetwork, table: FeatureTable, log_ratio: Floats, seed: int
) -> None:
    errors = errors_of(table, log_ratio)
    device = network.problem_norm.mean.device
    problems, place = np.unique(errors.problem, return_inverse=True)
    with torch.no_grad():
        inputs = _inputs(network, table, problems)
    kind, problem = (torch.from_numpy(x).to(device) for x in (errors.kind, place))
    error, noise, weight = (
        torch.from_numpy(x).to(device) for x in (errors.error, errors.noise, errors.weight)
    )
    model = network.uncertainty
    model.initialise(_typical(errors))
    optimizer = torch.optim.AdamW(
        [
            {"params": [model.first.weight, model.second.weight], "weight_decay": _DECAY},
            {"params": [model.first.bias, model.second.bias], "weight_decay": 0.0},
        ],
        _RATE,
    )
    rng = np.random.default_rng(seed)
    for epoch in range(_EPOCHS):
        for group in optimizer.param_groups:
            group["lr"] = _RATE * 0.5 * (1 + np.cos(np.pi * epoch / _EPOCHS))
        for piece in torch.from_numpy(rng.permutation(len(errors))).to(device).split(_BATCH):
            deviation = torch.exp(model(inputs[problem[piece]]))
            sigma = deviation.gather(1, kind[piece, None]).squeeze(1)
            variance = torch.square(sigma) + torch.square(noise[piece])
            loss = torch.log(variance) + torch.square(error[piece]) / variance
            optimizer.zero_grad()
            ((weight[piece] * loss).sum() / weight[piece].sum()).backward()
            optimizer.step()


def _shrink(table: FeatureTable, log_ratio: Floats, sigma: Floats) -> float:
    """Factor on the deviation of configs that makes the expected regret the measured one, on
    problems with little noise."""
    points = [p for p in calibration_points(table, log_ratio, sigma) if p.is_clear(_CLEAR_NOISE)]
    if len(points) < _MIN_CLEAR:
        return _DEFAULT_SHRINK
    measured = np.mean([p.regret(k) for p in points for k in _SHRUNK_AT])
    predicted = [
        np.mean([p.expected(k, shrink) for p in points for k in _SHRUNK_AT]) for shrink in _SHRINKS
    ]
    return float(np.interp(measured, predicted, _SHRINKS))


def row_uncertainties(network: TimingNetwork, table: FeatureTable) -> Floats:
    """Error estimate of each row of a table."""
    problems, place = np.unique(table.group, return_inverse=True)
    with torch.no_grad():
        values = torch.exp(network.uncertainty(_inputs(network, table, problems))).cpu().numpy()
    column = np.where(table.is_aten, VENDOR, np.where(table.is_config, CONFIGS, SPLITS))
    return np.asarray(values[place, column], np.float32)


def _inputs(
    network: TimingNetwork, table: FeatureTable, problems: npt.NDArray[np.int64]
) -> torch.Tensor:
    """Inputs of the uncertainty for these problems."""
    network.eval()
    device = network.problem_norm.mean.device
    problem = torch.from_numpy(table.problem[problems]).to(device)
    members = network.aten.members(problem, torch.from_numpy(table.vendor[problems]).to(device))
    return network.uncertainty.inputs(network.problem_norm(problem), members)


def _typical(errors: Errors) -> list[float]:
    """Deviation of each kind over all problems; a default for a kind without errors."""
    result = []
    for kind in (CONFIGS, VENDOR, SPLITS):
        mask = errors.kind == kind
        if not mask.any():
            result.append(_DEFAULT_SIGMA)
            continue
        excess = np.square(errors.error[mask]) - np.square(errors.noise[mask])
        mean = float(np.average(excess, weights=errors.weight[mask]))
        result.append(max(mean, 1e-4) ** 0.5)
    return result


@dataclass(frozen=True, eq=False)
class CalibrationPoint:
    """Rows of a problem in the order of benchmarking, ATen second at the latest."""

    time: npt.NDArray[np.float64]
    predicted: npt.NDArray[np.float64]
    """Predicted log times."""
    sigma: npt.NDArray[np.float64]
    noise: npt.NDArray[np.float64]
    aten: int | None
    """Position of ATen."""

    def is_clear(self, noise: float) -> bool:
        """True if there is a choice whose first few times have at most this mean noise."""
        return len(self.time) > _FEW and float(self.noise[:_FEW].mean()) < noise

    def regret(self, k: int) -> float:
        """Measured log regret of benchmarking the first `k`."""
        return float(np.log(self.time[:k].min() / self.time.min()))

    def expected(self, k: int, shrink: float = 1.0) -> float:
        """Expected log regret of that, including measurement noise, with the deviations of all but
        ATen shrunk."""
        factor = np.full(len(self.sigma), shrink)
        if self.aten is not None:
            factor[self.aten] = 1
        sigma = np.hypot(factor * self.sigma, self.noise)[:_BENCHMARKED]
        expected = expected_regrets(self.predicted[:_BENCHMARKED], sigma)
        return float(expected[min(k, len(expected)) - 1])


def calibration_points(
    table: FeatureTable, log_ratio: Floats, sigma: Floats
) -> Iterator[CalibrationPoint]:
    """Yield each problem of a table."""
    order = np.lexsort((log_ratio, table.group))
    for rows in np.split(order, np.flatnonzero(np.diff(table.group[order])) + 1):
        place = np.flatnonzero(table.is_aten[rows])
        if len(place) and place[0] > 1:
            rows = np.concatenate([rows[:1], rows[place[:1]], np.delete(rows, place[0])[1:]])
            place = np.ones(1, np.int64)
        yield CalibrationPoint(
            table.time_us[rows].astype(np.float64),
            log_ratio[rows].astype(np.float64),
            sigma[rows].astype(np.float64),
            table.noise[rows].astype(np.float64),
            int(place[0]) if len(place) else None,
        )
