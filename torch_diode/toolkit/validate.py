"""Validation: a model's predictions for a dataset's timings, scored beside the baselines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_diode.hardware import normalise, with_threads
from torch_diode.model.card import write_card
from torch_diode.model.checkpoint import load_model, load_network
from torch_diode.model.evaluation.holdout import SCORED, HoldoutSelection, problems_to_score
from torch_diode.model.evaluation.regret import KS
from torch_diode.model.evaluation.scoring import (
    EvaluatedPredictions,
    Evaluation,
    evaluate_predictions,
    predict_times,
    with_over_plain,
)
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.features.table import FeatureTable, feature_table
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.networks import MAX_LOG_RATIO
from torch_diode.model.networks.library_model import Network
from torch_diode.model.registry import SHIPPED, model_file
from torch_diode.toolkit.baselines import NO_BASELINES, Baselines, compute_baselines
from torch_diode.toolkit.datasets import (
    DatasetSource,
    hardware_of,
    read_all,
    select_comparable,
    source_name,
)
from torch_diode.toolkit.decisions import decisions_over_plain
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError, InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.timing import Timing

if TYPE_CHECKING:
    from torch_diode.model.wrapper import ModelWrapper

_MOST_NOTES = 5
"""Reasons to abstain that are worth a note; sizes beyond the model's range have one each."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Scores of a model on a dataset, and everything they were computed from."""

    model: Path
    dataset_name: str
    metadata: ModelMetadata
    network: Network
    hardware: Hardware
    dataset: Dataset
    table: FeatureTable
    """All usable timings of the dataset; `evaluated.table` has those of the scored problems."""
    evaluated: EvaluatedPredictions
    baselines: Baselines
    holdout: HoldoutSelection
    abstained: dict[str, int]
    """Reasons the model abstains for, and the number of problems left out by each."""
    notes: list[str]

    @property
    def evaluation(self) -> Evaluation:
        """Scores by slice, of the model and of the baselines."""
        return self.evaluated.evaluation

    @property
    def scored_on(self) -> str:
        """Description of the problems that were scored."""
        return self.holdout.describe(len(self.evaluated.problems))

    def write_card(self, overwrite: bool = False) -> list[Path]:
        """Write the model's card and its plots beside it."""
        return write_card(
            self.model, self.metadata, self.evaluated, self.scored_on, self.notes, overwrite
        )

    def worst_decisions(self, count: int) -> list[dict[str, Any]]:
        """Decisions with the greatest regret, worst first: the chosen and the best candidate."""
        decisions = []
        for chosen, best in self.evaluated.worst_decisions(count):
            rows = self.evaluated.table.rows
            taken, missed = (self.dataset[int(rows[row])] for row in (chosen, best))
            assert taken.time_us is not None
            assert missed.time_us is not None
            if taken.time_us <= missed.time_us:
                break
            decisions.append(
                {
                    "problem": _named(taken),
                    "chosen": str(taken.candidate),
                    "chosen_us": taken.time_us,
                    "best": str(missed.candidate),
                    "best_us": missed.time_us,
                    "regret": round(taken.time_us / missed.time_us, 5),
                }
            )
        return decisions

    def worst_predictions(self, count: int) -> list[dict[str, Any]]:
        """Predicted times that are furthest from the measured ones, worst first."""
        predictions = []
        table = self.evaluated.table
        for row in self.evaluated.worst_predictions(count):
            timing = self.dataset[int(table.rows[row])]
            predicted, measured = float(self.evaluated.predicted[row]), float(table.time_us[row])
            predictions.append(
                {
                    "problem": _named(timing),
                    "candidate": str(timing.candidate),
                    "predicted_us": round(predicted, 3),
                    "measured_us": round(measured, 3),
                    "factor": round(max(predicted / measured, measured / predicted), 5),
                }
            )
        return predictions

    def to_dict(self, worst: int = 10) -> dict[str, Any]:
        """The scores as JSON has them, with so many of the worst cases."""
        return {
            "model": str(self.model),
            "dataset": self.dataset_name,
            "judged_on": self.scored_on,
            "hardware": self.metadata.hardware,
            "notes": self.notes,
            "scores": self.evaluation.to_dict(),
            "worst_decisions": self.worst_decisions(worst),
            "worst_predictions": self.worst_predictions(worst),
        }


def validate(
    model: str | os.PathLike[str],
    dataset: DatasetSource,
    *,
    hardware: str | None = None,
    ops: Sequence[str] = (),
    score: str = "auto",
    batch_size: int = 256,
    ks: Sequence[int] = KS,
    baselines: bool = True,
    default_list: bool = True,
    progress: ProgressCallback = log_progress,
) -> Validation:
    """Score a model on a dataset's problems.

    `model` is a file or `shipped`. `score` selects the problems: `held-out` of training, `all`, or
    `auto`, which is held-out on the data the model was trained on and all on other data. Timings
    of another chip than the model's need that chip's name as `hardware`.
    """
    model, name = os.fspath(model), source_name(dataset)
    validation.one_of("validate-model", "score", score, SCORED)
    if model != SHIPPED:
        load_network(model)  # a faulty file shows before the data is read
    whole = read_all(dataset, progress=progress)
    timings = select_comparable(whole, hardware, ops, name, progress)
    chip = hardware_of(timings)
    path = model_file(model, chip)
    metadata, network = load_network(path)
    _check_chip(name, metadata, chip, hardware)
    table = feature_table(timings, chip)
    holdout = problems_to_score(score, metadata, table.arrays, table.has_choice, timings, whole)
    part, abstained = _supported(table.take(holdout.problems), timings, load_model(path), chip)
    progress(Progress("Scoring", 0, len(part.rows), "timings"))
    predicted = predict_clipped(network, part, batch_size)
    reference = NO_BASELINES
    if baselines:
        reference = compute_baselines(part, timings, chip, ks, default_list)
    evaluated = evaluate_predictions(
        part, predicted, reference.regrets, reference.noise_floor, ks=ks
    )
    if chip.kind == "cpu":
        decisions = decisions_over_plain(load_model(path), part, timings, chip)
        evaluated = with_over_plain(evaluated, decisions)
    progress(Progress("Scoring", len(part.rows), len(part.rows), "timings"))
    notes = [f"{n:,} problems left out: the model abstains, {why}" for why, n in abstained.items()]
    return Validation(
        path,
        name,
        metadata,
        network,
        chip,
        timings,
        table,
        evaluated,
        reference,
        holdout,
        abstained,
        [*notes[:_MOST_NOTES], *reference.notes],
    )


def predict_clipped(network: Network, table: FeatureTable, batch_size: int = 256) -> Floats:
    """Predicted times of a table's rows, kept as close to the roofline as a compile keeps them."""
    predicted = predict_times(network, table, batch_size)
    if np.isnan(predicted).any():
        raise InvalidValueError(
            "model: got a predicted time that is not a number; expected microseconds; train again"
        )
    roofline, most = table.roofline[table.group], np.float32(np.exp(MAX_LOG_RATIO))
    return np.clip(predicted, roofline / most, roofline * most)


def _named(timing: Timing) -> str:
    """A timing's problem, on a CPU with its threads."""
    return timing.problem.key + (f" x{timing.threads}" if timing.threads else "")


def _check_chip(name: str, metadata: ModelMetadata, chip: Hardware, given: str | None) -> None:
    """Refuse another chip's data unless it is named and of the same architecture."""
    if chip.name == metadata.hardware:
        return
    if chip.arch == metadata.arch and given and normalise(given) == chip.name:
        return
    remedy = (
        f"give --hardware-name {chip.name} to see how it does there"
        if chip.arch == metadata.arch
        else "train one on these timings"
    )
    raise HardwareMismatchError(
        f"{name}: got timings of {chip.name}; expected those of {metadata.hardware}, which the "
        f"model is of; {remedy}"
    )


def _supported(
    table: FeatureTable, dataset: Dataset, model: ModelWrapper, hardware: Hardware
) -> tuple[FeatureTable, dict[str, int]]:
    """A table without the problems the model abstains on, and its reasons to."""
    numbers = np.unique(table.group)
    problems = (dataset.problem(int(row)) for row in dataset.problems.first[numbers])
    threads = table.arrays.threads[numbers].astype(int).tolist()
    reasons = [
        model.supports(problem, with_threads(hardware, count))
        for problem, count in zip(problems, threads, strict=True)
    ]
    abstained = dict(Counter(reason for reason in reasons if reason is not None).most_common())
    if len(numbers) and sum(abstained.values()) == len(numbers):
        raise EmptySelectionError(
            f"validation: got {len(numbers):,} problems that the model abstains on "
            f"({next(iter(abstained))}); expected some of what it was trained on: "
            f"{', '.join(model.metadata.covers)}"
        )
    keep = np.zeros(len(table.problem), bool)
    keep[numbers[[reason is None for reason in reasons]]] = True
    return (table.take(keep) if abstained else table), abstained
