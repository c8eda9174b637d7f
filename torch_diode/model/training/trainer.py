"""Training: from a table of features to a network, in minutes on one core.

The heads for ATen and splits of K are trained first, then the network of configs, with early
stopping on the validation problems' regret, and last the uncertainty, on the validation problems
too. A problem with one candidate is trained on, but takes no part in regret. The same seed gives
the same weights on the same machine, but for a GPU's order of addition or another number of
threads. A stopped run resumes from its last evaluated epoch.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from torch_diode.files.atomic import replacing
from torch_diode.model.checkpoint import read_tensors, write_tensors
from torch_diode.model.evaluation.scoring import best_shift, predict_log_ratio, regret_scores
from torch_diode.model.networks import file_names, module_names
from torch_diode.model.networks.timing_models import DeepMatmulTimingModel, build_network
from torch_diode.model.training.batches import ProblemBatches, aten_calls, split_calls
from torch_diode.model.training.epoch import Row, config_optimizer, run_epoch
from torch_diode.model.training.options import Trained, TrainingOptions
from torch_diode.model.training.prefilter import fit_prefilter
from torch_diode.model.training.split import SplitTables
from torch_diode.model.training.time_limit import NO_LIMIT, TimeLimit
from torch_diode.model.training.uncertainty import fit_uncertainty
from torch_diode.model.training.vendor_heads import train_head
from torch_diode.types.errors import FileFaultError

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.networks.timing_models import TimingNetwork

Progress = Callable[[Row], None]

_FEW_CALLS = 10_000
"""Timings of ATen above which dropout is reduced: it then does more harm than good."""
_HEADS_SHARE = 0.2
"""Share of a time limit that each of the two library heads may take."""


def train(
    parts: SplitTables,
    options: TrainingOptions,
    progress: Progress | None = None,
    state_path: str | os.PathLike[str] | None = None,
    initial: Mapping[str, Floats] | None = None,
    limit: TimeLimit = NO_LIMIT,
) -> Trained[TimingNetwork]:
    """Train a network, to the last epoch or as long as the limit allows.

    With a `state_path`, the state is saved there after the heads and after each evaluated epoch,
    and a run resumes from its own state. With `initial` weights it starts from those of a trained
    network, and returns them if no epoch does better.
    """
    run = train_state(parts, options, progress, state_path, initial, limit)
    run.network.load_state_dict(run.best_state)
    calibrate(run.network, parts, run.batches, options)
    return Trained(run.network, run.history, options)


def train_state(
    parts: SplitTables,
    options: TrainingOptions,
    progress: Progress | None,
    state_path: str | os.PathLike[str] | None,
    initial: Mapping[str, Floats] | None = None,
    limit: TimeLimit = NO_LIMIT,
) -> _Run:
    """Train up to the final state, from which `train` finishes quickly."""
    torch.manual_seed(options.seed)
    run = _Run(parts, options, initial)
    if state_path is None or not run.resume(Path(state_path)):
        run.begin()
        if initial is not None:
            run.evaluate_start()
        run.train_vendor(progress, limit)
        if state_path is not None:
            run.save(Path(state_path))
    while run.epoch < options.epochs and run.since_best < options.patience:
        row = run.train_epoch(limit=limit)
        run.history.append(row)
        if progress is not None:
            progress(row)
        if state_path is not None and "regret@1" in row:
            run.save(Path(state_path))
        if limit.is_over:
            break
    return run


def calibrate(
    network: TimingNetwork, parts: SplitTables, batches: ProblemBatches, options: TrainingOptions
) -> None:
    """Fit what follows from the final weights: ATen's shift, the uncertainty and the prefilter."""
    table, ranked = parts.validation, parts.validation.with_a_choice()
    ratio = predict_log_ratio(network, ranked, ProblemBatches(ranked, device=options.device))
    network.aten.shift.add_(best_shift(ranked, ratio))
    ratio = predict_log_ratio(network, table, ProblemBatches(table, device=options.device))
    fit_uncertainty(network, table, ratio, options.seed)
    if isinstance(network, DeepMatmulTimingModel):
        fit_prefilter(network, batches, options.seed)


def train_configs(
    parts: SplitTables,
    options: TrainingOptions,
    progress: Progress | None = None,
    state_path: str | os.PathLike[str] | None = None,
) -> TimingNetwork:
    """Train a network of configs only, to its last epoch: a teacher for distillation, not a model.
    Its state is saved and resumed from like a model's."""
    torch.manual_seed(options.seed)
    run = _Run(parts, options)
    if state_path is None or not run.resume(Path(state_path)):
        run.begin()
    while run.epoch < options.epochs:
        row = run.train_epoch(evaluating=False)
        if progress is not None:
            progress(row)
        due = run.epoch % options.evaluate_every == 0 or run.epoch == options.epochs
        if state_path is not None and due:
            run.save(Path(state_path))
    return run.network.cpu().eval()


class _Run:
    def __init__(
        self,
        parts: SplitTables,
        options: TrainingOptions,
        initial: Mapping[str, Floats] | None = None,
    ) -> None:
        self.parts, self.options, self.initial = parts, options, initial or {}
        o = options
        self.starts_trained = initial is not None
        self.source = _source(parts, self.initial)
        self.network = build_network(o.kind, o.shape).to(o.device)
        self.optimizer = config_optimizer(self.network, o.learning_rate, o.weight_decay)
        self.epoch = self.since_best = 0
        self.best = math.inf
        self.best_state: dict[str, Any] = {}
        self.history: list[Row] = []

    @cached_property
    def batches(self) -> ProblemBatches:
        """Training batches, built on first use: a resumed teacher at its end needs none."""
        o = self.options
        return ProblemBatches(self.parts.train, o.far, o.far_share, o.device)

    @cached_property
    def validation(self) -> tuple[FeatureTable, ProblemBatches]:
        """Problems with a choice that early stopping is based on."""
        ranked = self.parts.validation.with_a_choice()
        return ranked, ProblemBatches(ranked, device=self.options.device)

    def begin(self) -> None:
        """Initialise the weights: the given ones, or random ones and the features' norms."""
        if self.starts_trained:
            given = {name: torch.from_numpy(value.copy()) for name, value in self.initial.items()}
            self.network.load_state_dict(given)
        else:
            self._fit_norms()
        self.best_state = self._copy()

    def evaluate_start(self) -> None:
        """Evaluate the initial network."""
        self.history.append({"epoch": 0, **self._evaluate()})

    def _fit_norms(self) -> None:
        table = self.parts.train
        problem = torch.from_numpy(table.problem[self.batches.problems])
        self.network.problem_norm.fit(problem)
        self.network.config_norm.fit(torch.from_numpy(table.config[self.batches.rows]))

    def train_vendor(self, progress: Progress | None = None, limit: TimeLimit = NO_LIMIT) -> None:
        """Train the heads for ATen and for splits of K."""
        o, table, afresh = self.options, self.parts.train, not self.starts_trained
        calls = aten_calls(table, o.device)
        if not len(calls):
            self._use_best_config_for_aten()
        epochs = min(o.aten_epochs, max(o.aten_rows // max(len(calls), 1), 1))
        dropout = o.aten_dropout * min(_FEW_CALLS / max(len(calls), 1), 1.0)
        rate = o.aten_rate
        most = limit.part(_HEADS_SHARE)
        train_head(self.network.aten, calls, epochs, rate, dropout, o.seed, progress, afresh, most)
        splits = split_calls(table, o.device)
        afresh = afresh or not self.network.split.trained
        epochs, dropout = o.split_epochs, o.aten_dropout
        most = limit.part(_HEADS_SHARE)
        train_head(self.network.split, splits, epochs, rate, dropout, o.seed, None, afresh, most)

    def _use_best_config_for_aten(self) -> None:
        """Without timings of ATen, let its head predict the mean of the best configs."""
        if self.starts_trained:
            return
        table = self.parts.train
        best = np.full(len(table.problem), np.inf)
        np.minimum.at(best, table.group, table.target)
        with torch.no_grad():
            self.network.aten.weights[-1].zero_()
            self.network.aten.biases[-1].fill_(float(best[np.isfinite(best)].mean()))

    def train_epoch(self, evaluating: bool = True, limit: TimeLimit = NO_LIMIT) -> Row:
        """Train one epoch; return its row of the history, with the regret if it is evaluated."""
        o = self.options
        row = run_epoch(self.network, self.batches, self.optimizer, o, o.seed, self.epoch, limit)
        self.epoch += 1
        due = self.epoch % o.evaluate_every == 0 or self.epoch == o.epochs or limit.is_over
        if evaluating and due:
            row |= self._evaluate()
        return row

    def _evaluate(self) -> Row:
        ranked, batches = self.validation
        scores = regret_scores(ranked, predict_log_ratio(self.network, ranked, batches))
        self.since_best += self.options.evaluate_every
        if scores[0].geomean < self.best:
            self.since_best = 0
        if scores[0].geomean <= self.best:
            # With few problems regrets are often equal: the later weights fit the times better.
            self.best, self.best_state = scores[0].geomean, self._copy()
        return {f"regret@{score.k}": score.geomean for score in scores}

    def _copy(self) -> dict[str, Any]:
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    def save(self, path: Path) -> None:
        """Save the state of the run as plain tensors and numbers."""
        state = {
            "options": asdict(self.options),
            "source": self.source,
            "epoch": self.epoch,
            "since_best": self.since_best,
            "best": self.best,
            "best_state": file_names(self.best_state),
            "network": file_names(self._copy()),
            "optimizer": self.optimizer.state_dict(),
            "history": self.history,
        }
        write_tensors(path, state)

    def resume(self, path: Path) -> bool:
        """Load the state of a run with the same options and data; False if there is none."""
        if not path.is_file():
            return False
        state = read_tensors(path, self.options.device)
        for name, own in (("options", asdict(self.options)), ("source", self.source)):
            if state.get(name) != own:
                other = "other options" if name == "options" else "other data"
                raise FileFaultError(
                    f"{path}: got the state of a run with {other}; expected the same; "
                    "remove it to start afresh"
                )
        self.network.load_state_dict(module_names(state["network"]))
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.since_best = state["epoch"], state["since_best"]
        self.best, self.best_state = state["best"], module_names(state["best_state"])
        self.history = state["history"]
        return True


def _source(parts: SplitTables, initial: Mapping[str, Floats]) -> str:
    """Hash of a run's data and initial weights, which a state must match."""
    digest = hashlib.sha256()
    for part in (parts.train, parts.validation):
        digest.update(part.group.tobytes())
        digest.update(part.time_us.tobytes())
    for _, array in sorted(file_names(initial).items()):
        digest.update(array.tobytes())
    return digest.hexdigest()[:20]


def write_history(path: str | os.PathLike[str], history: list[Row]) -> None:
    """Write the training curves as CSV, one row per epoch."""
    names = list(dict.fromkeys(name for row in history for name in row))
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(history)
