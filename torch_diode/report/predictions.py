"""The timings of a validation sorted by problem, each with the model's predicted time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torch_diode.model.evaluation.regret import standard_errors
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.problem import MMShape

if TYPE_CHECKING:
    from torch_diode.toolkit.validate import Validation

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PredictedTimings:
    """The timed rows of a dataset, problem by problem, and the time predicted for each.

    The rows of problem p are `starts[p]:starts[p + 1]`; problems without a choice are left out.
    """

    problems: list[MMShape]
    starts: Ids
    group: Ids
    candidates: Candidates
    is_aten: Flags
    measured: Floats
    errors: Floats
    """Standard error of each measured time, as a fraction."""
    predicted: Floats
    scored: Flags
    """The problems that scores are of."""

    @classmethod
    def of(cls, validation: Validation) -> PredictedTimings:
        """All timings of a validation's dataset, those of problems it does not score included."""
        from torch_diode.toolkit.validate import predict_clipped

        table, dataset = validation.table.with_a_choice(), validation.dataset
        is_scored = np.zeros(len(table.problem), bool)
        is_scored[validation.evaluated.problems] = True
        predicted = np.empty(len(table.rows))
        rest = ~is_scored[table.group]
        predicted[~rest] = validation.evaluated.predicted
        if rest.any():
            predicted[rest] = predict_clipped(validation.network, table.take(~is_scored))
        order = np.argsort(table.group, kind="stable")
        rows = table.rows[order]
        numbers, starts, group = np.unique(
            table.group[order], return_index=True, return_inverse=True
        )
        measured = table.time_us[order].astype(np.float64)
        spread, repeats = dataset.values("spread")[rows], dataset.values("repeats")[rows]
        return cls(
            problems=[dataset.problem(int(row)) for row in dataset.problems.first[numbers]],
            starts=np.r_[starts, len(rows)].astype(np.int64),
            group=group.astype(np.int64).reshape(-1),
            candidates=dataset.candidates(rows),
            is_aten=table.is_aten[order],
            measured=measured,
            errors=standard_errors(spread, repeats, measured),
            predicted=predicted[order],
            scored=is_scored[numbers],
        )

    def __len__(self) -> int:
        return len(self.problems)

    def rows_of(self, problem: int) -> slice:
        """The rows of a problem."""
        return slice(int(self.starts[problem]), int(self.starts[problem + 1]))
