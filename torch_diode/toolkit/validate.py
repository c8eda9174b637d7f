"""A model held against a dataset: what the validating commands have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torch_diode.hardware import normalise
from torch_diode.model.checkpoint import load_network
from torch_diode.model.evaluation.holdout import SCORED, HoldoutSelection, problems_to_score
from torch_diode.model.evaluation.scoring import (
    EvaluatedPredictions,
    evaluate_predictions,
    predict_times,
)
from torch_diode.model.features.problem_arrays import PRECISIONS
from torch_diode.model.features.table import FeatureTable, feature_table
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.provenance import dataset_noise_floor
from torch_diode.model.shipped import SHIPPED, model_file
from torch_diode.toolkit.baselines import Baselines, baselines
from torch_diode.toolkit.datasets import read_all
from torch_diode.toolkit.timings import chip_of, choose
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import OPS


@dataclass(frozen=True, eq=False)
class Validation:
    """What was found, and on what."""

    path: Path
    source: Path
    metadata: ModelMetadata
    dataset: Dataset
    judged: EvaluatedPredictions
    scored: HoldoutSelection
    notes: list[str]

    @property
    def judged_on(self) -> str:
        """The problems that were scored, in words."""
        return self.scored.told(len(self.judged.problems))


def validate(
    model: str,
    source: Path,
    hardware_name: str | None = None,
    ops: tuple[str, ...] = (),
    score: str = "auto",
    batch_size: int = 256,
    compare: bool = True,
) -> Validation:
    """A model's predictions for a dataset's timings, scored; without `compare` no baselines."""
    validation.one_of("validate-model", "score", score, SCORED)
    if model != SHIPPED:
        load_network(model)  # what is wrong with it shows before the data is read
    whole = read_all(source)
    dataset = choose(source, whole, hardware_name, ops)
    chip = chip_of(dataset)
    path = model_file(model, chip)
    metadata, network = load_network(path)
    _check_chip(source, metadata, chip, hardware_name)
    table = feature_table(dataset, chip)
    scored = problems_to_score(score, metadata, table.arrays, table.has_choice, dataset, whole)
    part, notes = _known(table.take(scored.problems), metadata)
    predicted = predict_times(network, part, batch_size)
    others = baselines(part, dataset, chip) if compare else Baselines({}, [])
    noise = dataset_noise_floor(part, dataset) if compare else []
    judged = evaluate_predictions(part, predicted, others.regrets, noise)
    return Validation(path, source, metadata, dataset, judged, scored, [*notes, *others.notes])


def _check_chip(source: Path, metadata: ModelMetadata, chip: Hardware, asked: str | None) -> None:
    """Another chip's data only where it was asked for by name, and of the same architecture."""
    if chip.name == metadata.hardware:
        return
    if chip.arch == metadata.arch and asked and normalise(asked) == chip.name:
        return
    remedy = (
        f"give --hardware-name {chip.name} to see how it does there"
        if chip.arch == metadata.arch
        else "train one on these timings"
    )
    raise HardwareMismatchError(
        f"{source}: got timings of {chip.name}; expected those of {metadata.hardware}, which the "
        f"model is of; {remedy}"
    )


def _known(table: FeatureTable, metadata: ModelMetadata) -> tuple[FeatureTable, list[str]]:
    """Without the problems the model would abstain on for what they are."""
    names = [*PRECISIONS, "other"]
    p = table.arrays
    kinds = np.array([f"{op}/{name}" for op in OPS for name in names])
    kind = p.op * len(names) + p.precision
    known = np.isin(kinds, metadata.covers)[kind]
    met = np.unique(table.group)
    left = met[~known[met]]
    if not len(left):
        return table, []
    if len(left) == len(met):
        raise EmptySelectionError(
            f"validation: got problems of {', '.join(sorted(set(kinds[kind[left]])))}; expected "
            f"what the model was trained on: {', '.join(metadata.covers)}"
        )
    said = ", ".join(sorted(set(kinds[kind[left]])))
    return table.take(known), [f"{len(left):,} problems left out: the model abstains on {said}"]
