"""The part of the timings that a page carries for its look-up box and its map.

All of millions of timings would make the page too large to send. Each problem keeps the fastest,
those the model ranks first, and ATen. Times become 16-bit numbers on a logarithmic scale, which is
finer than the measurement.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.report.predictions import Floats, Ids, PredictedTimings
from torch_diode.types.candidate_arrays import NUMBER_FIELDS
from torch_diode.types.grouping import number_rows
from torch_diode.types.problem import BATCHED

MOST_TIMINGS = 600_000
MOST_PROBLEMS = 40_000
_LEAST_EACH = 8
_STEPS = 2**16 - 1


def pack(timings: PredictedTimings) -> dict[str, Any]:
    """Problems, candidates and times as the page's script reads them."""
    chosen = _sample(len(timings), MOST_PROBLEMS)
    rows, each = _kept_rows(timings, chosen)
    counts = np.bincount(timings.group[rows], minlength=len(timings))[chosen]
    low, high = _span(timings, rows)
    codes, first = _distinct(timings, rows)
    kinds, kind = _kinds(timings, chosen)
    problems = [timings.problems[number] for number in chosen]
    return {
        "of_problems": len(timings),
        "each": each,
        "kinds": kinds,
        "kind": kind,
        **{name: [getattr(p, name) for p in problems] for name in "BMNK"},
        "scored": [int(flag) for flag in timings.scored[chosen]],
        "all": np.diff(timings.starts)[chosen].tolist(),
        "kept": counts.tolist(),
        "templates": list(timings.candidates.templates),
        "candidates": [_candidate(timings, int(row)) for row in first],
        "low": low,
        "step": (high - low) / _STEPS,
        "code": encoded(codes.astype("<u2" if len(first) <= 2**16 else "<u4")),
        "code_bytes": 2 if len(first) <= 2**16 else 4,
        "measured": encoded(_steps(timings.measured[rows], low, high)),
        "predicted": encoded(_steps(timings.predicted[rows], low, high)),
    }


def encoded(values: npt.NDArray[Any]) -> str:
    """Base64 of the bytes."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _sample(count: int, most: int) -> Ids:
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def _kept_rows(timings: PredictedTimings, chosen: Ids) -> tuple[Ids, int]:
    """The rows to keep of the chosen problems, and how many of a problem at most."""
    wanted = np.zeros(len(timings), bool)
    wanted[chosen] = True
    sizes = np.diff(timings.starts)[chosen]
    each = int(sizes.max())
    while each > _LEAST_EACH and np.minimum(sizes, each).sum() > MOST_TIMINGS:
        each = max(_LEAST_EACH, int(each * 0.95))
    rank = np.minimum(_ranks(timings, timings.measured), _ranks(timings, timings.predicted))
    rank[timings.is_aten] = -1
    order = np.lexsort((timings.measured, rank, timings.group))
    place = np.arange(len(order)) - timings.starts[timings.group[order]]
    kept = order[(place < each) & wanted[timings.group[order]]]
    return kept[np.lexsort((timings.measured[kept], timings.group[kept]))], each


def _ranks(timings: PredictedTimings, times: Floats) -> Ids:
    """Each row's place in its problem, fastest first."""
    order = np.lexsort((times, timings.group))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - timings.starts[timings.group[order]]
    return rank


def _span(timings: PredictedTimings, rows: Ids) -> tuple[float, float]:
    times = np.concatenate([timings.measured[rows], timings.predicted[rows]])
    low, high = float(np.log(times.min())), float(np.log(times.max()))
    return low, max(high, low + 1e-3)


def _steps(times: Floats, low: float, high: float) -> npt.NDArray[Any]:
    return np.rint((np.log(times) - low) / (high - low) * _STEPS).astype("<u2")


def _distinct(timings: PredictedTimings, rows: Ids) -> tuple[Ids, Ids]:
    """For each row its candidate's number, and for each candidate one row that has it."""
    c = timings.candidates
    columns = [c.template[rows], *(c.fields[name][rows] for name in NUMBER_FIELDS)]
    codes = number_rows(columns, len(rows))
    _, first = np.unique(codes, return_index=True)
    return codes, rows[first]


def _candidate(timings: PredictedTimings, row: int) -> list[Any]:
    """A candidate's template number, its tile, and its config as text."""
    c = timings.candidates
    tile = [int(c.fields[name][row]) for name in ("block_m", "block_n", "block_k")]
    candidate = c[row]
    return [int(c.template[row]), *tile, str(candidate).removeprefix(candidate.template).strip()]


def _kinds(timings: PredictedTimings, chosen: Ids) -> tuple[list[dict[str, Any]], list[int]]:
    """The kinds of problem (all but the sizes), and the kind of each."""
    seen: dict[str, int] = {}
    kinds: list[dict[str, Any]] = []
    numbers = []
    for number in chosen:
        problem = timings.problems[number]
        op, _, *rest = problem.key.split(":")
        name = ":".join([op, *rest])
        if name not in seen:
            seen[name] = len(kinds)
            kinds.append(
                {
                    "op": op,
                    "precision": problem.precision,
                    "layout": problem.layout,
                    "tail": ":".join(rest),
                    "batched": op in BATCHED,
                }
            )
        numbers.append(seen[name])
    return kinds, numbers
