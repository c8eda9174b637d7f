"""A dataset's timings beside what a model and the analytical heuristic predict for them."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.model.checkpoint import load_model, load_network
from torch_diode.model.evaluation.regret import standard_errors
from torch_diode.model.evaluation.scoring import predict_times
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.table import feature_table
from torch_diode.model.networks.limits import MOST_LOG_RATIO
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.wrapper import ModelWrapper
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_PROBLEMS_AT_ONCE = 32
"""Few enough for a layer's values to stay in the core's own cache."""


@dataclass(frozen=True, eq=False)
class PredictedTimings:
    """The timed rows of a dataset, problem by problem, and the time predicted for each.

    Rows of problem p stand at `starts[p]:starts[p + 1]`; problems without any are not here.
    """

    problems: list[MMShape]
    arrays: ProblemArrays
    roofline: npt.NDArray[np.float32]
    starts: Ids
    group: Ids
    rows: Ids
    """Where each stands in the dataset."""
    candidates: Candidates
    is_aten: Flags
    measured: Floats
    errors: Floats
    """How uncertain each measured time is, as a fraction."""
    predicted: Floats
    supported: Flags
    """The problems the model answers; on the others it abstains."""
    alone: int
    """Problems left out, since one candidate alone was timed: there is nothing to choose."""
    reasons: dict[str, int]
    """Why it abstains, and on how many problems."""

    def __len__(self) -> int:
        return len(self.problems)

    def rows_of(self, problem: int) -> slice:
        """Where a problem's rows stand."""
        return slice(int(self.starts[problem]), int(self.starts[problem + 1]))


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model both ways: as a compile asks it, and as a network for many timings at once."""

    wrapper: ModelWrapper
    network: TimingNetwork

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LoadedModel:
        """Read from a file."""
        return cls(load_model(path), load_network(path)[1])


def timings_of(dataset: Dataset, hardware: Hardware, model: LoadedModel) -> PredictedTimings:
    """All timed rows that evaluation counts, with the model's times for them."""
    table = feature_table(dataset, hardware)
    counts = np.bincount(table.group, minlength=len(table.problem))
    if counts.max() < 2:
        raise EmptySelectionError(
            "dataset: got one timed candidate a problem; expected at least two to choose between"
        )
    table = table.take(counts >= 2)
    predicted = predict_times(model.network, table, _PROBLEMS_AT_ONCE).astype(np.float64)
    if np.isnan(predicted).any():
        raise InvalidValueError(
            "model: got a predicted time that is not a number; expected microseconds; train again"
        )
    roofline = table.roofline[table.group].astype(np.float64)
    most = float(np.exp(MOST_LOG_RATIO))  # as where a compile asks
    predicted = np.clip(predicted, roofline / most, roofline * most)
    order = np.argsort(table.group, kind="stable")
    rows = table.rows[order]
    ids = table.group[order]
    numbers, starts, group = np.unique(ids, return_index=True, return_inverse=True)
    problems = [dataset.problem(int(row)) for row in dataset.problems.first[numbers]]
    reasons = [model.wrapper.supports(problem, hardware) for problem in problems]
    template, names = dataset.codes("template")
    fields = {name: dataset.values(name)[rows].astype(np.int32) for name in NUMBER_FIELDS}
    measured = table.time_us[order].astype(np.float64)
    spread, repeats = dataset.values("spread")[rows], dataset.values("repeats")[rows]
    return PredictedTimings(
        problems=problems,
        arrays=table.arrays.take(numbers),
        roofline=table.roofline[numbers],
        starts=np.r_[starts, len(rows)].astype(np.int64),
        group=group.astype(np.int64).reshape(-1),
        rows=rows,
        candidates=Candidates(tuple(names), template[rows].astype(np.int32), fields),
        is_aten=table.is_aten[order],
        measured=measured,
        errors=standard_errors(spread, repeats, measured),
        predicted=predicted[order],
        alone=int((counts == 1).sum()),
        supported=np.array([reason is None for reason in reasons]),
        reasons=dict(Counter(reason for reason in reasons if reason is not None)),
    )


def analytical_times(timings: PredictedTimings, wanted: Flags, hardware: Hardware) -> Floats:
    """The analytical heuristic's time for each row of the wanted problems, NaN elsewhere and
    where it abstains."""
    heuristic = AnalyticalHeuristic()
    times = np.full(len(timings.measured), np.nan)
    for number in np.flatnonzero(wanted):
        rows = timings.rows_of(int(number))
        candidates = timings.candidates.take(np.arange(rows.start, rows.stop))
        ranking = heuristic.rank(timings.problems[number], candidates, hardware)
        if ranking is not None:
            times[rows] = ranking.predicted_us
    return times
