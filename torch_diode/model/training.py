"""Training: from a table of features to a network, in minutes on one core.

ATen's head is trained first, then the network for configs, stopping on the validation problems'
regret with both in the ranking. Everything follows from the options and the table: the same seed
gives the same weights on the same machine. A run that is stopped goes on from its last epoch.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_diode.files.atomic import replacing
from torch_diode.model.batches import ProblemBatches
from torch_diode.model.feature_table import FeatureTable
from torch_diode.model.losses import aten_loss, listwise_loss, regression_loss
from torch_diode.model.networks import TimingNetwork, build_network
from torch_diode.model.scoring import best_shift, predict_log_ratio, regret_scores
from torch_diode.model.split import held_out
from torch_diode.types.errors import EmptySelectionError, FileFaultError

Row = dict[str, float]
Progress = Callable[[Row], None]


@dataclass(frozen=True)
class TrainingOptions:
    """Everything a training run depends on beside its data."""

    kind: str = "deep"
    shape: dict[str, int] = field(default_factory=dict)
    epochs: int = 36
    batch_problems: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 1e-3
    warmup: float = 0.15
    patience: int = 12
    """Epochs without a better validation regret after which to stop."""
    evaluate_every: int = 3
    temperature: float = 0.06
    list_weight: float = 0.05
    near: float = 0.25
    floor: float = 0.05
    far: float = 4.0
    far_share: float = 0.15
    aten_epochs: int = 150
    aten_rate: float = 3e-3
    aten_dropout: float = 0.05
    test_share: float = 0.15
    validation_share: float = 0.10
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Trained:
    """The network with the best validation regret, and how it got there."""

    network: TimingNetwork
    history: list[Row]
    options: TrainingOptions


@dataclass(frozen=True, eq=False)
class Parts:
    """A table's three parts, by problem; no two share one."""

    train: FeatureTable
    validation: FeatureTable
    test: FeatureTable


def split_table(table: FeatureTable, options: TrainingOptions) -> Parts:
    """The parts a run with these options trains on, stops by, and must never see."""
    test = held_out(table.arrays, options.test_share, options.seed)
    check = held_out(table.arrays, options.validation_share, options.seed, options.test_share)
    parts = Parts(table.take(~(test | check)), table.take(check), table.take(test))
    if not len(parts.train.group) or not len(parts.validation.group):
        raise EmptySelectionError(
            f"training: got {len(table.problem)} problems; expected enough for a training and a "
            "validation part; collect more, or change the shares"
        )
    return parts


def train(
    parts: Parts,
    options: TrainingOptions,
    progress: Progress | None = None,
    state_path: str | os.PathLike[str] | None = None,
) -> Trained:
    """Train a network. With a `state_path`, each evaluated epoch is kept there, and a run that
    finds its own state goes on from it."""
    torch.manual_seed(options.seed)
    run = _Run(parts, options)
    if state_path is None or not run.resume(Path(state_path)):
        run.train_aten()
    while run.epoch < options.epochs and run.since_best < options.patience:
        row = run.train_epoch()
        run.history.append(row)
        if progress is not None:
            progress(row)
        if state_path is not None and "regret@1" in row:
            run.save(Path(state_path))
    run.finish()
    return Trained(run.network, run.history, options)


class _Run:
    def __init__(self, parts: Parts, options: TrainingOptions) -> None:
        self.parts, self.options = parts, options
        o = options
        self.network = build_network(o.kind, o.shape).to(o.device)
        self.batches = ProblemBatches(parts.train, o.far, o.far_share, o.seed, o.device)
        self.checks = ProblemBatches(parts.validation, device=o.device)
        self.aten_parameters = list(self.network.aten.parameters())
        of_aten = {id(p) for p in self.aten_parameters}
        self.parameters = [p for p in self.network.parameters() if id(p) not in of_aten]
        self.optimizer = torch.optim.AdamW(
            self.parameters, o.learning_rate, weight_decay=o.weight_decay
        )
        self.epoch = self.since_best = 0
        self.best = math.inf
        self.best_state = self._copy()
        self.history: list[Row] = []
        self._fit_norms()

    def _fit_norms(self) -> None:
        table = self.parts.train
        chosen = np.unique(table.group)
        problem = torch.from_numpy(table.problem[chosen])
        vendor = torch.from_numpy(table.vendor[chosen])
        self.network.problem_norm.fit(problem)
        self.network.config_norm.fit(torch.from_numpy(table.config[self.batches.rows]))
        self.network.aten.norm.fit(torch.cat([problem, vendor], dim=1))

    def train_aten(self, batch: int = 256) -> None:
        """The head for ATen, on the problems where it was timed."""
        o, table, head = self.options, self.parts.train, self.network.aten
        rows = np.flatnonzero(table.is_aten)
        if not len(rows):
            return
        group = table.group[rows]
        problem = torch.from_numpy(table.problem[group]).to(o.device)
        vendor = torch.from_numpy(table.vendor[group]).to(o.device)
        target = torch.from_numpy(table.target[rows]).to(o.device)
        with torch.no_grad():
            head.biases[-1].fill_(float(target.mean()))
            head.weights[-1].mul_(0.3)
        optimizer = torch.optim.AdamW(self.aten_parameters, o.aten_rate, weight_decay=1e-2)
        rng = np.random.default_rng(o.seed)
        head.train()
        for epoch in range(o.aten_epochs):
            order = torch.from_numpy(rng.permutation(len(rows))).to(o.device)
            pieces = order.split(batch)
            for number, piece in enumerate(pieces):
                _set_rate(optimizer, o.aten_rate, (epoch + number / len(pieces)) / o.aten_epochs)
                members = head.members(problem[piece], vendor[piece], o.aten_dropout)
                optimizer.zero_grad()
                aten_loss(members, target[piece]).backward()
                optimizer.step()
        head.eval()

    def train_epoch(self) -> Row:
        """All problems once; the row of history for it, with the regret where it was evaluated."""
        o, total, steps = (
            self.options,
            np.zeros(2),
            math.ceil(len(self.batches) / self.options.batch_problems),
        )
        self.network.train()
        rng = np.random.default_rng((o.seed, self.epoch))
        for number, batch in enumerate(self.batches.draw(o.batch_problems, rng)):
            done = (self.epoch + number / steps) / o.epochs
            _set_rate(self.optimizer, o.learning_rate, done, o.warmup)
            predicted = self.network(batch.problem, batch.config, batch.group)
            error = regression_loss(predicted, batch, o.near, o.floor)
            order = listwise_loss(predicted, batch, o.temperature)
            self.optimizer.zero_grad()
            (error + o.list_weight * order).backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
            total += (error.item(), order.item())
        self.epoch += 1
        row = {
            "epoch": self.epoch,
            "loss": float(total[0]) / steps,
            "list_loss": float(total[1]) / steps,
        }
        if self.epoch % o.evaluate_every == 0 or self.epoch == o.epochs:
            row |= self._evaluate()
        return row

    def _evaluate(self) -> Row:
        ratio = predict_log_ratio(self.network, self.parts.validation, self.checks)
        found = regret_scores(self.parts.validation, ratio)
        if found[0].geomean < self.best:
            self.best, self.since_best, self.best_state = found[0].geomean, 0, self._copy()
        else:
            self.since_best += self.options.evaluate_every
        return {f"regret@{score.k}": score.geomean for score in found}

    def finish(self) -> None:
        """The best weights, and ATen made comparable with the best of many configs."""
        self.network.load_state_dict(self.best_state)
        ratio = predict_log_ratio(self.network, self.parts.validation, self.checks)
        self.network.aten.shift.fill_(best_shift(self.parts.validation, ratio))

    def _copy(self) -> dict[str, Any]:
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    def save(self, path: Path) -> None:
        """Everything needed to go on, as plain tensors and numbers."""
        state = {
            "options": asdict(self.options),
            "epoch": self.epoch,
            "since_best": self.since_best,
            "best": self.best,
            "best_state": self.best_state,
            "network": self._copy(),
            "optimizer": self.optimizer.state_dict(),
            "history": self.history,
        }
        with replacing(path) as temporary:
            torch.save(state, temporary)

    def resume(self, path: Path) -> bool:
        """Go on from a state of the same options; False where there is none."""
        if not path.is_file():
            return False
        state = torch.load(path, map_location=self.options.device, weights_only=True)
        if state["options"] != asdict(self.options):
            raise FileFaultError(
                f"{path}: got the state of a run with other options; expected the same; "
                "remove it to start afresh"
            )
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.since_best = state["epoch"], state["since_best"]
        self.best, self.best_state = state["best"], state["best_state"]
        self.history = state["history"]
        return True


def _set_rate(
    optimizer: torch.optim.Optimizer, peak: float, done: float, warmup: float = 0.1
) -> None:
    """Up to the peak in a straight line, then down to nothing along a cosine."""
    if done < warmup:
        rate = peak * (0.04 + 0.96 * done / warmup)
    else:
        rate = peak * 0.5 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup)))
    for group in optimizer.param_groups:
        group["lr"] = rate


def write_history(path: str | os.PathLike[str], history: list[Row]) -> None:
    """The curves as CSV, one row an epoch."""
    names = list(dict.fromkeys(name for row in history for name in row))
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(history)
