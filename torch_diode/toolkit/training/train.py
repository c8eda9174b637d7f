"""Training: from a dataset to a model file with its card, its scores and its curves."""

from __future__ import annotations

import contextlib
import glob
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.files.atomic import refuse_existing
from torch_diode.files.file_errors import naming_file
from torch_diode.model.card import check_card, write_card
from torch_diode.model.checkpoint import check_suffix, save_model
from torch_diode.model.evaluation import plots
from torch_diode.model.evaluation.regret import Times, problem_slices
from torch_diode.model.evaluation.scoring import (
    EvaluatedPredictions,
    Evaluation,
    evaluate_predictions,
    predict_times,
    with_over_plain,
)
from torch_diode.model.features.table import FeatureTable, feature_table
from torch_diode.model.metadata import CLEAN, WORSE_THAN_ATEN, ModelMetadata, build_metadata
from torch_diode.model.networks import LIBRARY
from torch_diode.model.networks.library_model import Network
from torch_diode.model.registry import SHIPPED, model_file
from torch_diode.model.training import trainer
from torch_diode.model.training.library_training import LIBRARY_DEFAULTS, train_library
from torch_diode.model.training.trainer import SplitTables, Trained, TrainingOptions
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
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.toolkit.training.parallel import (
    TrainingJob,
    report_epochs,
    train_in_parallel,
)
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError, MissingPartError
from torch_diode.types.hardware import Hardware

_LEAST_STEPS = 8
_MOST_THREADS = 4
_FINE_TUNE_DEFAULTS: dict[str, Any] = {
    "epochs": 12,
    "learning_rate": 2e-4,
    "aten_epochs": 20,
    "aten_rate": 1e-5,
    "evaluate_every": 1,
}
_OTHER_CHIP_DEFAULTS: dict[str, Any] = {
    "epochs": 24,
    "learning_rate": 1e-3,
    "aten_epochs": 100,
    "aten_rate": 5e-4,
    "evaluate_every": 2,
}
"""For a model of another chip: its library takes other kernels, so there is more to learn."""
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
        for path in _curve_files(model, options.log_dir):
            refuse_existing(path, overwrite)
    name = options.init_from
    initial = load_initial(name) if name and name != SHIPPED else None
    _training_options(options, initial, 0, device)
    return initial


def _training_options(
    options: TrainOptions,
    initial: InitialModel | None,
    seed: int,
    device: str | None,
    hardware: Hardware | None = None,
) -> TrainingOptions:
    """The values given, and for the rest the defaults of training or of fine-tuning, for timings of
    this hardware."""
    on_cpu = hardware is not None and hardware.kind == "cpu"
    kind = options.model_type or (LIBRARY if on_cpu else "deep")
    base: dict[str, Any] = {"kind": kind, "shape": options.shape}
    if kind == LIBRARY:
        base |= LIBRARY_DEFAULTS
    if initial is not None:
        _check_same_network(initial.metadata, options)
        shape = dict(initial.metadata.shape)
        same = hardware is None or hardware.name == initial.metadata.hardware
        defaults = _FINE_TUNE_DEFAULTS if same else _OTHER_CHIP_DEFAULTS
        base = {"kind": initial.metadata.kind, "shape": shape, **defaults}
    return TrainingOptions(**{**base, **options.overrides}, seed=seed, device=_device(device))


def _check_same_network(metadata: ModelMetadata, options: TrainOptions) -> None:
    own = {"model-type": metadata.kind, **metadata.shape}
    kind = {"model-type": options.model_type} if options.model_type else {}
    for name, value in {**kind, **options.shape}.items():
        if own.get(name) != value:
            raise InvalidValueError(
                f"train: got {name} {value} with a model to start from that has {own.get(name)}; "
                "expected the same; leave the option out"
            )


def _check_kind(kind: str, hardware: Hardware, initial: InitialModel | None, teachers: int) -> None:
    """Refuse a network that is not for this kind of hardware, and what it has no training of."""
    if (kind == LIBRARY) != (hardware.kind == "cpu"):
        expected = LIBRARY if hardware.kind == "cpu" else "base or deep"
        validation.refuse("train", "model-type", kind, f"{expected} for {hardware.name}")
    if kind == LIBRARY and (initial is not None or teachers):
        name = "init-from" if initial is not None else "teachers"
        raise InvalidValueError(
            f"train: got {name} with timings of {hardware.name}; expected none: a CPU's model "
            "trains in a minute, on all data together; leave the option out"
        )


def _touch(device: str) -> None:
    torch.zeros(1, device=device)


@lru_cache
def _device(name: str | None) -> str:
    try:
        device = torch.device(name or "cpu")
        if device.type != "cpu":
            # In another process: one forked from a process that holds a GPU cannot use it.
            run_in_subprocess(_touch, str(device))
    except (RuntimeError, AssertionError) as fault:
        reason = (str(fault).splitlines() or [""])[0]
        raise MissingPartError(
            f"device: got {name!r:.40}; expected one that is here, such as cpu ({reason:.100})"
        ) from None
    return str(device)


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
        options = _training_options(
            self.options, self.initial, self.seed, self.device, self.hardware
        )
        _check_kind(options.kind, self.hardware, self.initial, self.options.teachers)
        parts = trainer.split_table(feature_table(self.dataset, self.hardware), options)
        self._message(_describe_parts(parts))
        started = time.monotonic()
        with_replay = add_replay(parts, self.initial, self.hardware, self.seed, self.progress)
        options = self._adapt_to_few(options, parts, replays=with_replay is not parts)
        _make_folder(self.model.parent)
        try:
            trained = self._train(with_replay, options)
        except KeyboardInterrupt:
            states = [path.name for path in self._states()]
            if states:
                self._message(f"{', '.join(states)}: kept; the same command continues")
            raise
        self._message(f"Trained in {time.monotonic() - started:,.0f} s")
        return self._finish(trained, parts)

    def _message(self, text: str) -> None:
        self.progress(Progress(message=text))

    @property
    def _state(self) -> Path:
        """The file that a killed run continues from."""
        return self.model.with_name(f"{self.model.name}.state")

    @property
    def _teacher_states(self) -> list[Path]:
        numbers = range(1, self.options.teachers + 1)
        return [self.model.with_name(f"{self.model.name}.teacher-{i}") for i in numbers]

    def _states(self) -> list[Path]:
        """The state files there are; a run that was stopped may have had more teachers."""
        names = (glob.escape(self.model.name) + end for end in (".state", ".teacher-*"))
        return [path for name in names for path in sorted(self.model.parent.glob(name))]

    def _remove_states(self) -> None:
        for path in self._states():
            path.unlink()

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
        for path in self._states():
            if path in (self._state, *self._teacher_states):
                self._message(f"{path}: continuing from it")
        if options.kind == LIBRARY:
            report = report_epochs(self.progress, "Training", options.epochs)
            return train_library(parts, options, report)
        weights = self.initial.weights if self.initial else None

        jobs = teacher_jobs(parts, options, self._teacher_states)
        if jobs:
            job = TrainingJob(
                "Model",
                options.epochs,
                lambda report: trainer.train_state(parts, options, report, self._state, weights),
            )
            train_in_parallel([job, *jobs], self.progress)
        teachers = train_teachers(jobs, self.progress)
        report = report_epochs(self.progress, "Training", options.epochs)
        trained = trainer.train(parts, options, report, self._state, weights)
        if not teachers:
            return trained
        return distill_teachers(
            trained, teachers, parts, self.dataset, self.hardware, self.progress
        )

    def _finish(self, trained: Trained[Network], parts: SplitTables) -> TrainingResult:
        part, scored_on = _scored_part(parts)
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
        notes = [*baselines.notes, *_regret_before(trained), *_uncovered(part)]
        notes += _launch_note(self.dataset)
        if self.hardware.kind == "cpu":
            weights = {name: value.numpy() for name, value in network.state_dict().items()}
            model = ModelWrapper(metadata, weights)
            decisions = decisions_over_plain(model, part, self.dataset, self.hardware)
            evaluated = with_over_plain(evaluated, decisions)
        cards: list[Path] = []
        if is_written:
            cards = write_card(self.model, metadata, evaluated, scored_on, notes, self.overwrite)
            self._remove_states()
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
        self._remove_states()
        raise InvalidValueError(
            f"{self.model}: not written; training diverged: got predicted times that no kernel "
            "can take; lower --learning-rate"
        )

    def _write_curves(self, trained: Trained[Network]) -> list[Path]:
        folder = self.options.log_dir
        if folder is None:
            return []
        csv, svg = _curve_files(self.model, folder)
        trainer.write_history(csv, trained.history)
        try:
            plots.training_curves(svg, trained.history)
        except MissingPartError as fault:
            self._message(f"{csv}: the curves as numbers; {fault}")
            return [csv]
        return [csv, svg]


def _curve_files(model: Path, folder: Path) -> tuple[Path, Path]:
    return folder / f"{model.stem}-history.csv", folder / f"{model.stem}-curves.svg"


def _make_folder(path: Path) -> None:
    with naming_file(path):
        path.mkdir(parents=True, exist_ok=True)


def _scored_part(parts: SplitTables) -> tuple[FeatureTable, str]:
    """The problems to score on, and a description of them."""
    count = _count_choices(parts.test)
    if count:
        return parts.test, f"{count:,} problems held out of training"
    count = _count_choices(parts.validation)
    return parts.validation, (
        f"the {count:,} problems training stopped by: too few to hold out others, so the scores "
        "flatter it; collect a validation set"
    )


def _uncovered(part: FeatureTable) -> list[str]:
    """A note on the kinds of problems that the scores say nothing about."""
    numbers = np.unique(part.with_a_choice().group)
    slices = problem_slices(part.arrays.take(numbers), part.roofline[numbers])
    kinds = ("op=", "precision=", "layout=", "size=")
    missing = [n for n, m in slices.items() if n.startswith(kinds) and "," not in n and not m.any()]
    if not missing:
        return []
    return [
        f"none of the problems scored on is {', '.join(missing)}: how good the model is there is "
        "not known; validate it on problems that are"
    ]


def _count_choices(table: FeatureTable) -> int:
    """The number of problems with more than one candidate."""
    return int(np.count_nonzero(np.bincount(table.group, minlength=1) > 1))


def _describe_parts(parts: SplitTables) -> str:
    counts = [len(np.unique(p.group)) for p in (parts.train, parts.validation, parts.test)]
    return "{:,} problems to train on, {:,} to stop by, {:,} held out".format(*counts)


def _regret_before(trained: Trained[Network]) -> list[str]:
    """A note on the regret of the model that a run started from."""
    first = next((row for row in trained.history if row["epoch"] == 0), None)
    if first is None:
        return []
    best = min(row["regret@1"] for row in trained.history if "regret@1" in row)
    return [
        f"on the problems training stopped by, regret@1 was {first['regret@1']:.4f} before and "
        f"is {best:.4f} now"
    ]


def _launch_note(dataset: Dataset) -> list[str]:
    """The limit of a model whose timings include the launch."""
    if {*CLEAN} & {*dataset.texts("method")}:
        return []
    return [
        "the timings are autotuning's, with the launch in them: the order of Triton configs "
        "carries over, ATen's place among them on small problems may not"
    ]
