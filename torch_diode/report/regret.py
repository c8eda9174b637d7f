"""Regret of everything the report compares, problem by problem, so that slices can be cut from it.

A value is NaN where it cannot be told: a baseline that was not timed, or that abstains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from torch_diode.model.evaluation.regret import noise_regrets, regret_arrays, subset_regrets
from torch_diode.report.predictions import Flags, Floats, Ids, PredictedTimings, analytical_times
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware

KS = tuple(range(1, 21))
ANALYTICAL_SAMPLE = 4000
"""Problems the analytical heuristic is asked about; more would not move its means."""

InList = Callable[[Ids], tuple[Flags, float]]
"""For rows of the dataset: which are of a candidate that Inductor lists by default for their
problem, and the share of those lists that these rows are."""


@dataclass(frozen=True, eq=False)
class Regrets:
    """One row a scored problem; where there are columns, one for each k of `KS`."""

    problems: Ids
    """Their numbers among the timings' problems."""
    model: Floats
    analytical: Floats
    noise: Floats
    """What perfect knowledge would be charged with, by noise alone."""
    aten: Floats
    default: Floats
    coverage: float
    """The share of Inductor's default lists that was timed."""
    default_fault: str
    """Why there is no default list; empty where there is."""


def regrets_of(
    timings: PredictedTimings, scored: Flags, hardware: Hardware, in_list: InList | None
) -> Regrets:
    """Regrets of the model, and of what it has to beat, on the scored problems."""
    keep = scored[timings.group]
    group, measured = timings.group[keep], timings.measured[keep]
    problems, model = regret_arrays(group, measured, timings.predicted[keep], KS)
    asked = np.zeros(len(timings), bool)
    asked[np.random.default_rng(0).permutation(problems)[:ANALYTICAL_SAMPLE]] = True
    times = analytical_times(timings, asked, hardware)[keep]
    told = np.bincount(group, ~np.isnan(times), len(timings))[problems] > 0
    analytical = regret_arrays(group, measured, np.nan_to_num(times), KS)[1]
    aten = subset_regrets(group, measured, timings.is_aten[keep])
    default, coverage, fault = _default_regret(timings, keep, in_list)
    return Regrets(
        problems=problems,
        model=model,
        analytical=np.where(told[:, None], analytical, np.nan),
        noise=noise_regrets(group, measured, timings.errors[keep], KS),
        aten=aten[problems],
        default=default[problems],
        coverage=coverage,
        default_fault=fault,
    )


def _default_regret(
    timings: PredictedTimings, keep: Flags, in_list: InList | None
) -> tuple[Floats, float, str]:
    """By problem number the regret of the best in Inductor's default list, the share of the list
    that was timed, and why there is none.

    Only candidates that were timed count, so this is at most what perfect benchmarking of the
    whole list would be charged with.
    """
    found = np.full(len(timings), np.nan)
    if in_list is None:
        return found, 0.0, "it was not asked for"
    try:
        listed, coverage = in_list(timings.rows[keep])
    except DiodeError as fault:
        return found, 0.0, str(fault)
    values = subset_regrets(timings.group[keep], timings.measured[keep], listed)
    found[: len(values)] = values
    return found, coverage, ""
