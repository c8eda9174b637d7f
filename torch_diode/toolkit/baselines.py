"""Baselines of an evaluation: the analytical heuristic, Inductor's default list, and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torch_diode.hardware import with_threads
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.integration.hooks.fallback import fault_of
from torch_diode.model.evaluation.regret import KS, noise_regrets, regret_arrays, standard_errors
from torch_diode.types.candidate import ONEDNN
from torch_diode.types.errors import MissingPartError

if TYPE_CHECKING:
    from torch_diode.integration.capture.default_lists import Listed
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.hardware import Hardware

ANALYTICAL = "analytical"
DEFAULT_LIST = "default list"
ALWAYS_ONEDNN = "oneDNN alone"

_MOST_PROBLEMS = 2000
"""The analytical heuristic ranks one problem at a time; a sample this large is accurate enough."""

Regrets = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Baselines:
    """Regrets to compare a model's with. NaN where a baseline has no answer."""

    regrets: dict[str, Regrets]
    """By name and problem number: one column per k, or one where a baseline tries all it has."""
    noise: Regrets
    """Regret of perfect knowledge by noise alone: one row per problem with a choice, one column
    per k."""
    coverage: float = 0.0
    """Share of Inductor's default lists that was timed."""
    missing_list: str = ""
    """Why there is no default list to compare with; empty where there is one."""
    notes: tuple[str, ...] = ()

    @property
    def noise_floor(self) -> list[float]:
        """Geometric mean of `noise` for each k."""
        return np.exp(np.log(self.noise).mean(axis=0)).tolist() if len(self.noise) else []


NO_BASELINES = Baselines({}, np.zeros((0, len(KS))))


def compute_baselines(
    table: FeatureTable,
    dataset: Dataset,
    hardware: Hardware,
    ks: Sequence[int] = KS,
    default_list: bool = True,
) -> Baselines:
    """Baselines on a table's rows; the default list is scored as if benchmarked perfectly."""
    regrets = {ANALYTICAL: _analytical_regrets(table, dataset, hardware, ks)}
    notes = []
    if not table.is_aten.any():
        notes.append("ATen was not timed: it is no candidate here, and no baseline")
    coverage, missing = 0.0, "it was left out"
    if hardware.kind == "cpu":
        default_list = False
        regrets |= _library_regrets(table)
    if default_list:

        def add_default_list() -> None:
            nonlocal coverage
            regrets[DEFAULT_LIST], listed = _default_list_regrets(table, dataset, hardware)
            coverage = listed.coverage
            notes.extend([f"{DEFAULT_LIST}: {listed.note}"] if listed.note else [])

        missing = fault_of(add_default_list)
        if missing:  # Inductor's own error, or there is no list of this chip
            notes.append(f"no {DEFAULT_LIST} to compare with: {missing}")
    if not missing and coverage < 1:
        notes.append(
            f"{DEFAULT_LIST}: {coverage:.0%} of its configs were timed; with all of them "
            "its regret would be lower"
        )
    spread, repeats = (dataset.values(name)[table.rows] for name in ("spread", "repeats"))
    errors = standard_errors(spread, repeats, table.time_us)
    noise = noise_regrets(table.group, table.time_us, errors, ks)
    return Baselines(regrets, noise, coverage, missing, tuple(notes))


def _library_regrets(table: FeatureTable) -> dict[str, Regrets]:
    """Regret of always running oneDNN, on the problems it was timed on."""
    if ONEDNN not in table.labels:
        return {}
    is_onednn = table.label == table.labels.index(ONEDNN)
    return {ALWAYS_ONEDNN: table.subset_regrets(is_onednn)[:, None]}


def _default_list_regrets(
    table: FeatureTable, dataset: Dataset, hardware: Hardware
) -> tuple[Regrets, Listed]:
    if hardware.kind != "cuda":
        raise MissingPartError(f"Inductor's list is read for NVIDIA chips; got {hardware.name}")
    from torch_diode.integration.capture.default_lists import listed_rows

    listed = listed_rows(dataset, table.rows, hardware)
    return table.subset_regrets(listed.rows)[:, None], listed


def _analytical_regrets(
    table: FeatureTable, dataset: Dataset, hardware: Hardware, ks: Sequence[int]
) -> Regrets:
    heuristic = AnalyticalHeuristic()
    candidates = dataset.candidates(table.rows)
    order = np.argsort(table.group, kind="stable")
    heads = np.flatnonzero(np.diff(table.group[order])) + 1
    predicted = np.full(len(table.rows), np.nan)
    blocks = [rows for rows in np.split(order, heads) if len(rows) > 1]
    for rows in blocks[:: max(-(-len(blocks) // _MOST_PROBLEMS), 1)]:
        problem = dataset.problem(int(table.rows[rows[0]]))
        part = candidates.take(rows)
        chip = with_threads(hardware, int(table.arrays.threads[table.group[rows[0]]]))
        if not heuristic.why_abstained(problem, part, chip):
            predicted[rows] = heuristic.predict_us(problem, part, chip)
    known = np.isfinite(predicted)
    ids, values = regret_arrays(table.group[known], table.time_us[known], predicted[known], ks)
    regrets = np.full((len(table.problem), len(ks)), np.nan)
    regrets[ids] = values
    return regrets
