"""A training run as the commands make it: data in, model, card and curves out."""

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
import typer

from torch_diode.cli.console.output import print_line
from torch_diode.cli.console.progress import TrainingProgress
from torch_diode.cli.console.score_tables import print_errors, print_regret, print_slices, say_notes
from torch_diode.cli.options.training import Learning
from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.files.file_errors import naming_file
from torch_diode.model.card import check_card, write_card
from torch_diode.model.checkpoint import check_suffix, save_model
from torch_diode.model.evaluation import plots
from torch_diode.model.evaluation.regret import Times
from torch_diode.model.evaluation.scoring import evaluate_predictions, predict_times
from torch_diode.model.features.table import FeatureTable, feature_table
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.provenance import dataset_noise_floor, describe
from torch_diode.model.shipped import SHIPPED, model_file
from torch_diode.model.training.trainer import (
    Progress,
    SplitTables,
    Trained,
    TrainingOptions,
    split_table,
    train,
    train_state,
    write_history,
)
from torch_diode.toolkit.baselines import baselines
from torch_diode.toolkit.timings import chip_of, read_timings
from torch_diode.toolkit.training.fine_tuning import Start, continued, start_from, with_replay
from torch_diode.toolkit.training.parallel import TrainingJob, train_in_parallel
from torch_diode.toolkit.training.distillation import distill, make_teachers, teacher_jobs
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import (
    InvalidValueError,
    MissingPartError,
)
from torch_diode.types.hardware import Hardware

_LEAST_STEPS = 8
_MOST_THREADS = 4
_GENTLY: dict[str, Any] = {
    "epochs": 12,
    "learning_rate": 2e-4,
    "aten_epochs": 20,
    "aten_rate": 1e-5,
    "evaluate_every": 1,
}
"""What differs when a trained model is trained further: it has much to lose."""
_LEAST_US, _MOST_US = 1e-6, 1e12
"""No kernel takes less, or more."""
_REHEARSED_BATCH = 12
"""Problems in a batch at least, where most are drawn ones."""


@dataclass(frozen=True)
class Data:
    """Where the timings are, and which of them."""

    path: Path
    forms: Sequence[str] | None = None
    hardware: str | None = None
    ops: tuple[str, ...] = ()

    def read(self) -> Dataset:
        """The timings asked for."""
        return read_timings(self.path, self.forms, self.hardware, self.ops)


@contextlib.contextmanager
def few_threads() -> Iterator[None]:
    """No more threads than small networks have work for: a training of 9 s on two cores was seen to
    take 67 s on sixteen."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, _MOST_THREADS))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def chosen_options(
    learning: Learning, start: Start | None, seed: int, device: str | None
) -> TrainingOptions:
    """The options of a run: those given, and for the rest what suits the start."""
    base: dict[str, Any] = {"kind": learning.model_type or "deep", "shape": learning.shape}
    if start is not None:
        _check_same_network(start.metadata, learning.model_type, learning.shape)
        base = {"kind": start.metadata.kind, "shape": dict(start.metadata.shape), **_GENTLY}
    return TrainingOptions(**{**base, **learning.rest}, seed=seed, device=_device(device))


def _check_same_network(metadata: ModelMetadata, kind: str | None, shape: dict[str, int]) -> None:
    own = {"model-type": metadata.kind, **metadata.shape}
    asked = {**({"model-type": kind} if kind else {}), **shape}
    for name, value in asked.items():
        if own.get(name) != value:
            raise InvalidValueError(
                f"train: got {name} {value} with a model to start from that has {own.get(name)}; "
                "expected the same; leave the option out"
            )


def _touch(device: str) -> None:
    torch.zeros(1, device=device)


@lru_cache
def _device(name: str | None) -> str:
    try:
        device = torch.device(name or "cpu")
        if device.type != "cpu":
            # Tried out apart: what is forked from a process that holds a GPU cannot use it.
            run_in_subprocess(_touch, str(device))
    except (RuntimeError, AssertionError) as fault:
        reason = (str(fault).splitlines() or [""])[0]
        raise MissingPartError(
            f"device: got {name!r:.40}; expected one that is here, such as cpu ({reason:.100})"
        ) from None
    return str(device)


@dataclass
class Training:
    """One run of the command. Faults in what was asked for show before anything is computed."""

    data: Data
    model: Path
    learning: Learning
    seed: int = 0
    device: str | None = None

    def run(self) -> None:
        """Train, score on held-out problems, write."""
        with few_threads():
            self._run()

    def check(self) -> Start | None:
        """Refuse what is wrong whatever the data; the model to start from, where a file is."""
        check_suffix(self.model)
        check_card(self.model)
        if self.learning.log_dir is not None:
            _make_folder(self.learning.log_dir)
        named = self.learning.init_from
        start = start_from(named) if named and named != SHIPPED else None
        chosen_options(self.learning, start, self.seed, self.device)
        return start

    def _run(self) -> None:
        start = self.check()
        dataset = self.data.read()
        hardware = chip_of(dataset, self.device)
        if self.learning.init_from == SHIPPED:
            start = start_from(str(model_file(SHIPPED, hardware)))
        options = chosen_options(self.learning, start, self.seed, self.device)
        print_line(
            f"{len(dataset):,} timings of {len(dataset.problems):,} problems on {hardware.name}"
        )
        table = feature_table(dataset, hardware)
        parts = split_table(table, options)
        print_line(_told(parts))
        begun = time.monotonic()
        more = with_replay(parts, start, hardware, options.seed)
        options = _for_few(options, parts, self.learning, with_replay=more is not parts)
        _make_folder(self.model.parent)
        try:
            trained = self._train(more, options, start, dataset, hardware)
        except KeyboardInterrupt:
            kept = [path.name for path in self._states()]
            if kept:
                print_line(f"{', '.join(kept)}: kept; the same command continues")
            raise
        print_line(f"Trained in {time.monotonic() - begun:,.0f} s")
        self._finish(trained, parts, dataset, hardware, start)

    @property
    def state(self) -> Path:
        """Where a run that is killed is continued from."""
        return self.model.with_name(f"{self.model.name}.state")

    @property
    def teachers(self) -> list[Path]:
        """The same for each of its teachers."""
        count = self.learning.teachers
        return [self.model.with_name(f"{self.model.name}.teacher-{i + 1}") for i in range(count)]

    def _states(self) -> list[Path]:
        """Those there are; a run that was stopped may have had more teachers."""
        names = (glob.escape(self.model.name) + end for end in (".state", ".teacher-*"))
        return [path for name in names for path in sorted(self.model.parent.glob(name))]

    def _train(
        self,
        parts: SplitTables,
        options: TrainingOptions,
        start: Start | None,
        dataset: Dataset,
        hardware: Hardware,
    ) -> Trained:
        for path in self._states():
            if path in (self.state, *self.teachers):
                print_line(f"{path}: going on from it")
        weights = start.weights if start else None

        def state(tell: Progress) -> None:
            train_state(parts, options, tell, self.state, weights)

        jobs = teacher_jobs(parts, options, self.teachers)
        if jobs:
            train_in_parallel([TrainingJob("Model", options.epochs, state), *jobs])
        teachers = make_teachers(jobs)
        with TrainingProgress(options.epochs) as progress:
            trained = train(parts, options, progress.tell, self.state, weights)
        return distill(trained, teachers, parts, dataset, hardware) if teachers else trained

    def _finish(
        self,
        trained: Trained,
        parts: SplitTables,
        dataset: Dataset,
        hardware: Hardware,
        start: Start | None,
    ) -> None:
        part, judged_on = judged_part(parts)
        network = trained.network.to("cpu")
        others = baselines(part, dataset, hardware)
        noise = dataset_noise_floor(part, dataset)
        predicted = predict_times(network, part)
        self._check_learnt(predicted)
        judged = evaluate_predictions(part, predicted, others.regrets, noise)
        found = judged.evaluation
        print_regret(found)
        print_slices(found)
        print_errors(found)
        notes = [*others.notes, *_before(trained)]
        print_line(f"Scores are of {judged_on}.")
        say_notes(notes)
        self._write_curves(trained)
        worse = [name for name in found.worse if _matters(name)]
        if worse and len(judged.problems):
            told = f"ATen alone is better in {', '.join(worse)}"
            if self.learning.must_beat_aten:
                print_line(f"{self.model}: not written, {told}")
                raise typer.Exit(1)
            print_line(f"Warning: {told}.")
        metadata = describe(trained, parts.train, dataset, hardware, found)
        if self.learning.teachers:
            options = {**metadata.options, "teachers": self.learning.teachers}
            metadata = replace(metadata, options=options)
        if start is not None:
            metadata = continued(metadata, start)
        save_model(self.model, network.state_dict(), metadata)
        files = write_card(self.model, metadata, judged, judged_on, notes)
        for path in self._states():
            path.unlink()
        size = self.model.stat().st_size / 1e3
        print_line(
            f"{self.model}: {size:,.0f} kB; card in {' and '.join(f.name for f in files[:2])}"
        )

    def _check_learnt(self, predicted: Times) -> None:
        """Refuse a network that has run away: its times are none, and its scores no numbers."""
        if ((predicted > _LEAST_US) & (predicted < _MOST_US)).all():
            return
        for path in self._states():
            path.unlink()
        raise InvalidValueError(
            f"{self.model}: got a network whose times are none, and not written: training ran "
            "away; give a lower --learning-rate"
        )

    def _write_curves(self, trained: Trained) -> None:
        folder = self.learning.log_dir
        if folder is None:
            return
        csv = folder / f"{self.model.stem}-history.csv"
        write_history(csv, trained.history)
        try:
            plots.training_curves(csv.with_name(f"{self.model.stem}-curves.svg"), trained.history)
        except MissingPartError as fault:
            print_line(f"{csv}: the curves as numbers; {fault}")
            return
        print_line(f"{csv}: the curves, and {self.model.stem}-curves.svg beside it")


def _make_folder(path: Path) -> None:
    with naming_file(path):
        path.mkdir(parents=True, exist_ok=True)


def judged_part(parts: SplitTables) -> tuple[FeatureTable, str]:
    """The problems to score on, and how to call them."""
    count = _choices(parts.test)
    if count:
        return parts.test, f"{count:,} problems held out of training"
    count = _choices(parts.validation)
    return parts.validation, (
        f"the {count:,} problems training stopped by: too few to hold out others, so the scores "
        "flatter it; collect a validation set"
    )


def _for_few(
    options: TrainingOptions, parts: SplitTables, learning: Learning, *, with_replay: bool
) -> TrainingOptions:
    """With few problems, smaller batches, so that there are steps to learn by; and no stopping
    early, since a handful of validation problems cannot say when."""
    count = len(np.unique(parts.train.group))
    most = max(count // _LEAST_STEPS, _REHEARSED_BATCH if with_replay else 1)
    if options.batch_problems > most:
        print_line(f"Batches of {most:,}: there are few problems to take steps by")
        options = replace(options, batch_problems=most)
    if not len(parts.test.group) and learning.patience is None:
        options = replace(options, patience=options.epochs)
    return options


def _choices(table: FeatureTable) -> int:
    """How many problems have more than one candidate."""
    return int(np.count_nonzero(np.bincount(table.group, minlength=1) > 1))


def _told(parts: SplitTables) -> str:
    counts = [len(np.unique(p.group)) for p in (parts.train, parts.validation, parts.test)]
    return "{:,} problems to train on, {:,} to stop by, {:,} held out".format(*counts)


def _before(trained: Trained) -> list[str]:
    """How good the model was that a run started from."""
    first = next((row for row in trained.history if row["epoch"] == 0), None)
    if first is None:
        return []
    best = min(row["regret@1"] for row in trained.history if "regret@1" in row)
    return [
        f"on the problems training stopped by, regret@1 was {first['regret@1']:.4f} before and "
        f"is {best:.4f} now"
    ]


def _matters(slice_name: str) -> bool:
    return slice_name.startswith(("all", "op=", "precision=")) and "," not in slice_name
