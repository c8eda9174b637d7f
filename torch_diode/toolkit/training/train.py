"""Training: from a dataset to a model file with its card, its scores and its curves."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from torch_diode.files.atomic import refuse_existing
from torch_diode.files.file_errors import naming_file
from torch_diode.model.card import check_card, write_card
from torch_diode.model.checkpoint import check_suffix, save_model
from torch_diode.model.evaluation import plots
from torch_diode.model.evaluation.regret import Times
from torch_diode.model.evaluation.scoring import (
    EvaluatedPredictions,
    Evaluation,
    evaluate_predictions,
    predict_times,
    with_over_plain,
)
from torch_diode.model.features.table import feature_table
from torch_diode.model.metadata import WORSE_THAN_ATEN, ModelMetadata, build_metadata
from torch_diode.model.networks import LIBRARY
from torch_diode.model.networks.library_model import Network
from torch_diode.model.registry import SHIPPED, model_file
from torch_diode.model.training import trainer
from torch_diode.model.training.library_training import train_library
from torch_diode.model.training.options import Trained, TrainingOptions
from torch_diode.model.training.split import SplitTables, split_table
from torch_diode.model.training.time_limit import TimeLimit
from torch_diode.model.wrapper import ModelWrapper
from torch_diode.toolkit.baselines import compute_baselines
from torch_diode.toolkit.datasets import (
    DatasetSource,
    hardware_of,
    read_all,
    select_comparable,
    source_name,
)
from torch_diode.toolkit.decisions import decisions_over_plain
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.toolkit.training.distillation import distill_teachers, teacher_jobs, train_teachers
from torch_diode.toolkit.training.fine_tuning import (
    InitialModel,
    add_replay,
    load_initial,
    merge_metadata,
)
from torch_diode.toolkit.training.network_options import check_kind, resolve_options
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.toolkit.training.parallel import TrainingJob, report_epochs, train_in_parallel
from torch_diode.toolkit.training.score_notes import (
    launch_note,
    regret_before,
    scored_part,
    uncovered,
)
from torch_diode.toolkit.training.state_files import StateFiles
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError, MissingPartError
from torch_diode.types.hardware import Hardware

_LEAST_STEPS = 8
_MOST_THREADS = 4
_LEAST_US, _MOST_US = 1e-6, 1e12
"""No kernel takes less, or more."""
_LEAST_REPLAY_BATCH = 12
"""Problems in a batch at least, where most are drawn ones."""


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained model: its file and card, its scores on problems apart from training."""

    path: Path
    is_written: bool
    """False where `must_beat_aten` was set and ATen alone is better."""
    metadata: ModelMetadata
    evaluated: EvaluatedPredictions
    scored_on: str
    history: list[dict[str, float]]
    """Losses of each epoch, and regrets where it was evaluated."""
    notes: list[str]
    worse_than_aten: list[str]
    """Operations and precisions in which ATen alone is better."""
    card_files: list[Path]
    curve_files: list[Path]

    @property
    def evaluation(self) -> Evaluation:
        """Scores by slice, of the model and of the baselines."""
        return self.evaluated.evaluation


def train(
    dataset: DatasetSource,
    model: Path,
    options: TrainOptions = TrainOptions(),  # noqa: B008 - frozen
    *,
    hardware: str | None = None,
    ops: Sequence[str] = (),
    forms: Sequence[str] | None = None,
    seed: int = 0,
    device: str | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = log_progress,
) -> TrainingResult:
    """Train a model on a dataset, score it on held-out problems, and write it with its card.

    `hardware` and `ops` select a part of the dataset, `forms` the file formats read in a directory.
    A run that was killed continues where the same call is made again.
    """
    refuse_existing(model, overwrite)
    initial = check_training(model, options, device, overwrite)
    with _limited_threads():
        whole = read_all(dataset, forms, progress=progress)
        timings = select_comparable(whole, hardware, ops, source_name(dataset), progress)
        chip = hardware_of(timings, device)
        if options.init_from == SHIPPED:
            initial = load_initial(str(model_file(SHIPPED, chip)))
        run = _Run(timings, chip, model, options, initial, seed, device, overwrite, progress)
        return run.run()


def check_training(
    model: Path, options: TrainOptions, device: str | None = None, overwrite: bool = False
) -> InitialModel | None:
    """Raise for faults that no dataset would mend; the model to start from, where it is a file."""
    check_suffix(model)
    check_card(model, overwrite)
    if options.log_dir is not None:
        _make_folder(options.log_dir)
    name = options.init_from
    initial = load_initial(name) if name and name != SHIPPED else None
    resolve_options(options, initial, 0, device)
    return initial


@contextlib.contextmanager
def _limited_threads() -> Iterator[None]:
    """No more threads than small networks have work for: a training of 9 s on two cores was seen to
    take 67 s on sixteen."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, _MOST_THREADS))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class _Run:
    """One training run."""

    dataset: Dataset
    hardware: Hardware
    model: Path
    options: TrainOptions
    initial: InitialModel | None
    seed: int
    device: str | None
    overwrite: bool
    progress: ProgressCallback

    def run(self) -> TrainingResult:
        problems = len(self.dataset.problems)
        self._message(
            f"{len(self.dataset):,} timings of {problems:,} problems on {self.hardware.name}"
        )
        options = resolve_options(self.options, self.initial, self.seed, self.device, self.hardware)
        check_kind(options.kind, self.hardware, self.initial, self.options.teachers)
        parts = split_table(feature_table(self.dataset, self.hardware), options)
        self._message(_describe_parts(parts))
        started = time.monotonic()
        with_replay = add_replay(parts, self.initial, self.hardware, self.seed, self.progress)
        options = self._adapt_to_few(options, parts, replays=with_replay is not parts)
        _make_folder(self.model.parent)
        try:
            trained = self._train(with_replay, options)
        except KeyboardInterrupt:
            states = [path.name for path in self._states.there()]
            self._message(
                f"{', '.join(states)}: kept; the same command continues"
                if states
                else "Nothing was finished that could be kept; the same command starts afresh"
            )
            raise
        self._message(f"Trained in {time.monotonic() - started:,.0f} s")
        return self._finish(trained, parts)

    def _message(self, text: str) -> None:
        self.progress(Progress(message=text))

    @property
    def _states(self) -> StateFiles:
        return StateFiles(self.model, self.options.teachers)

    def _adapt_to_few(
        self, options: TrainingOptions, parts: SplitTables, *, replays: bool
    ) -> TrainingOptions:
        """With few problems, batches small enough for several steps an epoch; and no early
        stopping where validation problems are too few to decide it."""
        count = len(np.unique(parts.train.group))
        most = max(count // _LEAST_STEPS, _LEAST_REPLAY_BATCH if replays else 1)
        if options.batch_problems > most:
            self._message(f"Batches of {most:,}: there are few problems to take steps by")
            options = replace(options, batch_problems=most)
        if not len(parts.test.group) and self.options.patience is None:
            options = replace(options, patience=options.epochs)
        return options

    def _train(self, parts: SplitTables, options: TrainingOptions) -> Trained[Network]:
        minutes = self.options.minutes
        limit = TimeLimit(None if minutes is None else 60 * minutes)
        for path in self._states.continued():
            self._message(f"{path}: continuing from it")
        if options.kind == LIBRARY:
            report = report_epochs(self.progress, "Training", options.epochs)
            return train_library(parts, options, report, limit)
        weights = self.initial.weights if self.initial else None

        jobs = teacher_jobs(parts, options, self._states.of_teachers)
        if jobs:
            job = TrainingJob(
                "Model",
                options.epochs,
                lambda report: trainer.train_state(
                    parts, options, report, self._states.own, weights
                ),
            )
            train_in_parallel([job, *jobs], self.progress)
        teachers = train_teachers(jobs, self.progress)
        report = report_epochs(self.progress, "Training", options.epochs)
        trained = trainer.train(parts, options, report, self._states.own, weights, limit)
        if not teachers:
            return trained
        return distill_teachers(
            trained, teachers, parts, self.dataset, self.hardware, self.progress
        )

    def _finish(self, trained: Trained[Network], parts: SplitTables) -> TrainingResult:
        part, scored_on = scored_part(parts)
        network = trained.network.to("cpu")
        predicted = predict_times(network, part)
        self._check_converged(predicted)
        evaluation = evaluate_predictions(part, predicted).evaluation
        metadata = build_metadata(trained, parts.train, self.dataset, self.hardware, evaluation)
        if self.options.teachers:
            values = {**metadata.options, "teachers": self.options.teachers}
            metadata = replace(metadata, options=values)
        if self.initial is not None:
            metadata = merge_metadata(metadata, self.initial, evaluation.worse)
        worse = list(metadata.scores[WORSE_THAN_ATEN])
        is_written = not (worse and self.options.must_beat_aten)
        if is_written:  # before anything else that may fail
            save_model(self.model, network.state_dict(), metadata, self.overwrite)
        curves = self._write_curves(trained)
        baselines = compute_baselines(part, self.dataset, self.hardware)
        evaluated = evaluate_predictions(part, predicted, baselines.regrets, baselines.noise_floor)
        notes = [*baselines.notes, *regret_before(trained), *uncovered(part)]
        notes += launch_note(self.dataset)
        if self.hardware.kind == "cpu":
            weights = {name: value.numpy() for name, value in network.state_dict().items()}
            model = ModelWrapper(metadata, weights)
            decisions = decisions_over_plain(model, part, self.dataset, self.hardware)
            evaluated = with_over_plain(evaluated, decisions)
        cards: list[Path] = []
        if is_written:
            cards = write_card(self.model, metadata, evaluated, scored_on, notes, self.overwrite)
            self._states.remove()
        return TrainingResult(
            self.model,
            is_written,
            metadata,
            evaluated,
            scored_on,
            trained.history,
            notes,
            worse,
            cards,
            curves,
        )

    def _check_converged(self, predicted: Times) -> None:
        if ((predicted > _LEAST_US) & (predicted < _MOST_US)).all():
            return
        self._states.remove()
        raise InvalidValueError(
            f"{self.model}: not written; training diverged: got predicted times that no kernel "
            "can take; lower --learning-rate"
        )

    def _write_curves(self, trained: Trained[Network]) -> list[Path]:
        folder = self.options.log_dir
        if folder is None:
            return []
        csv, svg = _curve_files(self.model, folder, self.overwrite)
        trainer.write_history(csv, trained.history)
        try:
            plots.training_curves(svg, trained.history)
        except MissingPartError as fault:
            self._message(f"{csv}: the curves as numbers; {fault}")
            return [csv]
        return [csv, svg]


def _curve_files(model: Path, folder: Path, overwrite: bool) -> tuple[Path, Path]:
    """Files for the curves of a training, numbered where an earlier one of that name has some."""
    for number in itertools.count(1):
        stem = model.stem if number == 1 else f"{model.stem}-{number}"
        files = folder / f"{stem}-history.csv", folder / f"{stem}-curves.svg"
        if overwrite or not any(file.exists() for file in files):
            break
    return files


def _make_folder(path: Path) -> None:
    with naming_file(path):
        path.mkdir(parents=True, exist_ok=True)


def _describe_parts(parts: SplitTables) -> str:
    counts = [len(np.unique(p.group)) for p in (parts.train, parts.validation, parts.test)]
    return "{:,} problems to train on, {:,} to stop by, {:,} held out".format(*counts)
