"""How far off a network's predictions are, learnt from problems it was not trained on.

What the predictions of a problem have in common moves no choice among its configs, so the error of
configs is what is left of it without that; the error of ATen, and of splits of K, is against what
the configs have in common. Noise of the measurements is known row by row and is taken out: the
estimate is of the model's own error, and does not grow because a clock jittered.

Configs that are alike err alike, and what errors share moves no choice between them either. So the
deviation of configs is shrunk, by one factor for all problems, to what predicts the regret that was
found when errors are taken for independent, as whoever uses it does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.features.table import FeatureTable
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.training.calibration import decisions

CONFIGS, VENDOR, SPLITS = range(3)
"""Columns of what the doubt says."""

_FIRST = 16
"""Of a problem's configs, so many with the shortest predictions count: choices are made there."""
_LARGEST = 0.7
_EPOCHS = 40
_BATCH = 1024
_RATE = 5e-3
_DECAY = 1.0
"""Strong: a thousand problems teach forty inputs by heart otherwise."""
_UNKNOWN = 0.3
_SHRINKS = np.linspace(0.3, 1.2, 10)
_SHRUNK_AT = (2, 4)
_CLEAR = 0.01
_LEAST_CLEAR = 50
_USUAL_SHRINK = 0.6


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of log times: of which problem and kind, how large, how much of it may be noise."""

    problem: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    error: Floats
    noise: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.problem)


def errors_of(table: FeatureTable, log_ratio: Floats) -> Errors:
    """The errors of predictions for a table's rows, as the module's text has it."""
    error = np.clip(log_ratio - table.target, -_LARGEST, _LARGEST)
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
    """Rows of each problem's configs that are predicted to be fastest."""
    rows = np.flatnonzero(table.is_config)
    order = rows[np.lexsort((log_ratio[rows], table.group[rows]))]
    ids = table.group[order]
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else ids
    rank = np.arange(len(ids)) - np.repeat(starts, np.diff(np.r_[starts, len(ids)]))
    return np.asarray(order[rank < count])


def fit_uncertainty(
    network: TimingNetwork, table: FeatureTable, log_ratio: Floats, seed: int = 0
) -> None:
    """Train a network's doubt on a part it was not trained on, in place: the deviations under
    which the errors found are most likely, and then the regret found."""
    _fit_deviations(network, table, log_ratio, seed)
    shrink = _shrink(table, log_ratio, row_uncertainties(network, table))
    with torch.no_grad():
        network.uncertainty.second.bias[CONFIGS] += float(np.log(shrink))


def _fit_deviations(
    network: TimingNetwork, table: FeatureTable, log_ratio: Floats, seed: int
) -> None:
    found = errors_of(table, log_ratio)
    device = network.problem_norm.mean.device
    met, place = np.unique(found.problem, return_inverse=True)
    with torch.no_grad():
        inputs = _inputs(network, table, met)
    kind, problem = (torch.from_numpy(x).to(device) for x in (found.kind, place))
    error, noise, weight = (
        torch.from_numpy(x).to(device) for x in (found.error, found.noise, found.weight)
    )
    doubt = network.uncertainty
    doubt.initialise(_typical(found))
    biases = [doubt.first.bias, doubt.second.bias]
    optimizer = torch.optim.AdamW(
        [
            {"params": [doubt.first.weight, doubt.second.weight], "weight_decay": _DECAY},
            {"params": biases, "weight_decay": 0.0},
        ],
        _RATE,
    )
    rng = np.random.default_rng(seed)
    for epoch in range(_EPOCHS):
        for group in optimizer.param_groups:
            group["lr"] = _RATE * 0.5 * (1 + np.cos(np.pi * epoch / _EPOCHS))
        for piece in torch.from_numpy(rng.permutation(len(found))).to(device).split(_BATCH):
            deviation = torch.exp(doubt(inputs[problem[piece]]))
            sigma = deviation.gather(1, kind[piece, None]).squeeze(1)
            variance = torch.square(sigma) + torch.square(noise[piece])
            unlikely = torch.log(variance) + torch.square(error[piece]) / variance
            optimizer.zero_grad()
            ((weight[piece] * unlikely).sum() / weight[piece].sum()).backward()
            optimizer.step()


def _shrink(table: FeatureTable, log_ratio: Floats, sigma: Floats) -> float:
    """The factor on the deviation of configs with which expected regret is the regret found, on
    problems where noise has no great part in it."""
    clear = [d for d in decisions(table, log_ratio, sigma) if d.is_clear(_CLEAR)]
    if len(clear) < _LEAST_CLEAR:
        return _USUAL_SHRINK
    measured = np.mean([d.regret(k) for d in clear for k in _SHRUNK_AT])
    predicted = [
        np.mean([d.expected(k, shrink) for d in clear for k in _SHRUNK_AT]) for shrink in _SHRINKS
    ]
    return float(np.interp(measured, predicted, _SHRINKS))


def row_uncertainties(network: TimingNetwork, table: FeatureTable) -> Floats:
    """Error estimates of each row of a table."""
    met, place = np.unique(table.group, return_inverse=True)
    with torch.no_grad():
        values = torch.exp(network.uncertainty(_inputs(network, table, met))).cpu().numpy()
    column = np.where(table.is_aten, VENDOR, np.where(table.is_config, CONFIGS, SPLITS))
    return np.asarray(values[place, column], np.float32)


def _inputs(
    network: TimingNetwork, table: FeatureTable, problems: npt.NDArray[np.int64]
) -> torch.Tensor:
    """What the doubt sees of these problems."""
    network.eval()
    device = network.problem_norm.mean.device
    problem = torch.from_numpy(table.problem[problems]).to(device)
    members = network.aten.members(problem, torch.from_numpy(table.vendor[problems]).to(device))
    return network.uncertainty.inputs(network.problem_norm(problem), members)


def _typical(found: Errors) -> list[float]:
    """The deviation of each kind over all problems; a guess where there is none of it."""
    result = []
    for kind in (CONFIGS, VENDOR, SPLITS):
        mask = found.kind == kind
        if not mask.any():
            result.append(_UNKNOWN)
            continue
        excess = np.square(found.error[mask]) - np.square(found.noise[mask])
        mean = float(np.average(excess, weights=found.weight[mask]))
        result.append(max(mean, 1e-4) ** 0.5)
    return result
