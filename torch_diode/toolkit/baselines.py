"""What a model is held against: rankings and lists that need no training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.model.evaluation.regret import KS, regret_arrays, subset_regrets
from torch_diode.model.features.table import FeatureTable
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware

ANALYTICAL = "analytical"
DEFAULT_LIST = "default list"

_MOST_PROBLEMS = 2000
"""The analytical heuristic is asked problem by problem; a few thousand say how good it is."""

Regrets = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Baselines:
    """Regrets by problem number, and what to say of them."""

    regrets: dict[str, Regrets]
    notes: list[str]


def baselines(table: FeatureTable, dataset: Dataset, hardware: Hardware) -> Baselines:
    """The analytical heuristic, and Inductor's DEFAULT list with perfect benchmarking, on a
    table's rows."""
    found = {ANALYTICAL: _analytical(table, dataset, hardware)}
    notes = []
    if not table.is_aten.any():
        notes.append("ATen was not timed: it is no candidate here, and no baseline")
    try:
        found[DEFAULT_LIST], note = _default_list(table, dataset, hardware)
    except MissingPartError as fault:
        note = f"no {DEFAULT_LIST} to compare with: {fault}"
    if hardware.kind != "cuda":
        found.pop(DEFAULT_LIST, None)
    return Baselines(found, [*notes, *([note] if note else [])])


def _default_list(table: FeatureTable, dataset: Dataset, hardware: Hardware) -> tuple[Regrets, str]:
    if hardware.kind != "cuda":
        raise MissingPartError(f"Inductor's list is read for NVIDIA chips; got {hardware.name}")
    from torch_diode.integration.capture.default_lists import listed_rows

    listed = listed_rows(dataset, table.rows, hardware)
    found = subset_regrets(table.group, table.time_us, listed.rows)
    note = ""
    if listed.coverage < 1:
        note = (
            f"{DEFAULT_LIST}: {listed.coverage:.0%} of its configs were timed; with all of them "
            "its regret would be lower"
        )
    return _by_problem(found[:, None], len(table.problem)), note


def _by_problem(values: Regrets, count: int) -> Regrets:
    padded = np.full((count, values.shape[1]), np.nan)
    padded[: len(values)] = values
    return padded


def _analytical(table: FeatureTable, dataset: Dataset, hardware: Hardware) -> Regrets:
    heuristic = AnalyticalHeuristic()
    template, names = dataset.codes("template")
    fields = {name: dataset.values(name)[table.rows].astype(np.int32) for name in NUMBER_FIELDS}
    candidates = Candidates(tuple(names), template[table.rows].astype(np.int32), fields)
    found = np.full((len(table.problem), len(KS)), np.nan)
    order = np.argsort(table.group, kind="stable")
    heads = np.flatnonzero(np.diff(table.group[order])) + 1
    predicted = np.full(len(table.rows), np.nan)
    blocks = [rows for rows in np.split(order, heads) if len(rows) > 1]
    for rows in blocks[:: max(-(-len(blocks) // _MOST_PROBLEMS), 1)]:
        problem = dataset.problem(int(table.rows[rows[0]]))
        part = candidates.take(rows)
        if not heuristic.why_abstained(problem, part, hardware):
            predicted[rows] = heuristic.predict_us(problem, part, hardware)
    known = np.isfinite(predicted)
    ids, values = regret_arrays(table.group[known], table.time_us[known], predicted[known])
    found[ids] = values
    return found
