"""Problems of the live selection benchmark, a model's choices without Inductor, and the summary."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _live import Row, geomean, quantile

from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import read_shapes
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration.rank import plain_ranking
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.roofline import roofline_us
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

ROOT = Path(__file__).parents[1]
VALIDATION = ROOT / "diode_datasets/matmul/{}/validation/full-1.parquet"
"""The other file has a single kind of problem, which would dominate."""
REAL = ROOT / "diode_datasets/shapes/real_models.json"
MOST_ROOFLINE_US = 300.0
SWEPT = 8
LOG_NORMAL, REAL_MODELS, COMPLETE, ALL = "log-normal", "real models", "swept", "all"
"""Origins of problems; those of either with a swept complete space; all."""
DIODE, TUNED, DEFAULT = "diode", "diode max-autotune", "max-autotune"
PLAIN = "plain"
NO_MATMUL = "no matmul"
"""Recorded instead of a pick if torch ran something else."""


@dataclass(frozen=True)
class Posed:
    """A problem outside the training data. `swept` are its fastest candidates in a sweep over the
    complete space, if there was one."""

    problem: MMShape
    origin: str
    swept: tuple[Candidate, ...] = ()


def posed_problems(count: int, seed: int, hardware: Hardware) -> list[Posed]:
    """Problems of both origins in turn, balanced over op and dtype in any prefix."""
    swept = _swept(hardware)
    real = [p for p in read_shapes(REAL).problems if p.out_dtype == p.dtype]
    sets = {LOG_NORMAL: sorted(swept.keys() - set(real)), REAL_MODELS: real}
    found = [
        _spread([Posed(p, name, swept.get(p, ())) for p in some if _is_quick(p, hardware)], seed)
        for name, some in sets.items()
    ]
    mixed = [one for pair in itertools.zip_longest(*found) for one in pair if one is not None]
    return mixed[:count]


def _swept(hardware: Hardware) -> dict[MMShape, tuple[Candidate, ...]]:
    """Fastest configs of each problem of the validation set, some of which are of real models."""
    data = read_dataset(str(VALIDATION).format(hardware.name))
    times = data.values("time_us").copy()  # NaN where something could not run
    codes, names = data.codes("template")
    times[np.isin(np.asarray(names)[codes], (ATEN, DECOMPOSE_K))] = np.nan
    best: dict[MMShape, list[Candidate]] = {data.problem(int(r)): [] for r in data.problems.first}
    for row in data.problems.fastest(times, SWEPT):
        best[data.problem(int(row))].append(data[int(row)].candidate)
    return {problem: tuple(candidates) for problem, candidates in best.items()}


def _is_quick(problem: MMShape, hardware: Hardware) -> bool:
    return float(roofline_us(ProblemArrays.of(problem), hardware)[0]) <= MOST_ROOFLINE_US


def _spread(found: list[Posed], seed: int) -> list[Posed]:
    """Shuffle, then take one of each kind in turn."""
    random.Random(seed).shuffle(found)
    kinds: dict[Hashable, list[Posed]] = {}
    for one in found:
        p = one.problem
        kinds.setdefault((p.op, p.dtype, p.tf32), []).append(one)
    turns = itertools.zip_longest(*(kinds[kind] for kind in sorted(kinds, key=str)))
    return [one for turn in turns for one in turn if one is not None]


# Summary


def time_of(row: Row, method: str) -> tuple[float, float] | None:
    """Time of a method's kernel and its noise as a fraction; None if unknown."""
    times = row.get("times", {})
    if method == "best":
        name = min(times, key=lambda name: times[name][0], default=None)
    else:
        name = {ATEN: ATEN, DIODE: row.get("diode")}.get(method) or row.get(method, {}).get("pick")
    found = times.get(name)
    return (found[0], found[1]) if found else None


def ratios(rows: Sequence[Row], method: str, over: str) -> list[tuple[float, float, Row]]:
    """Ratio, noise and row of each row that has both times."""
    found = []
    for row in rows:
        one, other = time_of(row, method), time_of(row, over)
        if one and other:
            found.append((one[0] / other[0], math.hypot(one[1], other[1]), row))
    return found


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """All numbers of the benchmark, with the number of problems behind each."""
    result: dict[str, Any] = {}
    for name in (LOG_NORMAL, REAL_MODELS, COMPLETE, ALL):
        part = [row for row in rows if name in (ALL, row["set"], row.get("swept") and COMPLETE)]
        result[name] = {
            f"{method} over {over}": _of_ratios(ratios(part, method, over))
            for method, over in (
                *((DIODE, other) for other in ("best", ATEN, DEFAULT)),
                *((TUNED, other) for other in ("best", ATEN, DEFAULT)),
                *((other, "best") for other in (ATEN, DEFAULT)),
            )
        }
    result["kernels benchmarked"] = {
        method: _mean(
            [
                row[method]["benchmarked"]
                for row in rows
                if method in row and row[method]["pick"] != NO_MATMUL
            ]
        )
        for method in (TUNED, DEFAULT)
    }
    result["picks not timed"] = {
        method: sum(
            method in row and row[method]["pick"] != NO_MATMUL and not time_of(row, method)
            for row in rows
        )
        for method in (TUNED, DEFAULT)
    }
    result["decision_us"] = quantile([r["decision_us"] for r in rows if "decision_us" in r], 0.5)
    result["compile seconds"] = _compile_seconds(rows)
    result["chosen ATen"] = chosen_aten(rows)
    return result


def _of_ratios(found: Sequence[tuple[float, float, Row]]) -> dict[str, float]:
    values = [ratio for ratio, _, _ in found]
    return {
        "problems": len(values),
        "geomean": geomean(values),
        "p99": quantile(values, 0.99),
        "most": max(values, default=math.nan),
        "above 1.05": sum(value > 1.05 for value in values),
        "above 1.05 beyond noise": sum(value - noise > 1.05 for value, noise, _ in found),
    }


def _compile_seconds(rows: Sequence[Row]) -> dict[str, float]:
    """Compile seconds from empty caches; with torch-diode also by whether a template was compiled.

    That makes most of the difference, so the few cold problems are weighted to the share of all
    problems that have a template compiled.
    """
    cold = [row["cold"] for row in rows if DIODE in row.get("cold", {})]
    compiled = [c for c in cold if c[DIODE]["configs"]]
    kept = [c for c in cold if not c[DIODE]["configs"]]
    share = chosen_aten(rows)
    if cold and not (compiled and kept):
        share = float(not compiled)

    def over(method: str, other: str, parts: Sequence[tuple[Sequence[Row], float]]) -> float:
        logs = 0.0
        for part, weight in parts:
            pairs = [(c[method], c[other]) for c in part if method in c and other in c]
            found = [one["compile_s"] / two["compile_s"] for one, two in pairs]
            logs += weight * math.log(geomean(found)) if weight else 0.0
        return math.exp(logs)

    all_of_them = ((kept, share), (compiled, 1 - share))
    found: dict[str, float] = {
        "problems": len(cold),
        "a template compiled": len(compiled),
        "share of ATen": share,
    }
    for method in (PLAIN, DIODE, TUNED, DEFAULT):
        means = (
            (_mean([c[method]["compile_s"] for c in part if method in c]), weight)
            for part, weight in all_of_them
            if weight
        )
        found[f"{method}, mean"] = sum(mean * weight for mean, weight in means)
    for method in (DIODE, TUNED, DEFAULT):
        found[f"{method} over {PLAIN}"] = over(method, PLAIN, all_of_them)
    found[f"{DIODE} over {PLAIN}, ATen kept"] = over(DIODE, PLAIN, [(kept, 1)])
    found[f"{DIODE} over {PLAIN}, a template compiled"] = over(DIODE, PLAIN, [(compiled, 1)])
    found[f"{DEFAULT} over {DIODE}"] = over(DEFAULT, DIODE, all_of_them)
    found[f"{DEFAULT} over {TUNED}"] = over(DEFAULT, TUNED, all_of_them)
    return found


def chosen_aten(rows: Sequence[Row]) -> float:
    """Share of the problems on which torch-diode keeps ATen."""
    return _mean([float(row["diode"] == ATEN) for row in rows if row.get("diode")])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def table_rows(found: dict[str, Any]) -> list[list[Any]]:
    """Rows of a table with the summary's ratios."""
    columns = ("problems", "geomean", "p99", "most", "above 1.05", "above 1.05 beyond noise")
    rows: list[list[Any]] = [["ratio of GPU times", "set", *columns]]
    for name in (LOG_NORMAL, REAL_MODELS, COMPLETE, ALL):
        for label, numbers in found[name].items():
            if numbers["problems"]:
                rows.append([label, name, *(numbers[column] for column in columns)])
    return rows


def worst(rows: Sequence[Row], method: str, over: str, count: int) -> list[list[Any]]:
    """Problems on which a method does worst, with the kernels it ran."""
    name: Callable[[Row], str] = lambda row: (  # noqa: E731
        row["diode"] if method == DIODE else row[method]["pick"]
    )
    found = sorted(ratios(rows, method, over), key=lambda one: -one[0])[:count]
    return [
        ["problem", f"{method} over {over}", "noise", "ran", "best known"],
        *(
            [
                row["problem"],
                ratio,
                noise,
                name(row),
                min(row["times"], key=lambda n: row["times"][n][0]),
            ]
            for ratio, noise, row in found
        ),
    ]


def plainly(
    problem: MMShape, heuristic: Heuristic, hardware: Hardware
) -> tuple[Candidates, Ranking]:
    """`plain_ranking` of a heuristic; an error if it abstains."""
    found = plain_ranking(problem, heuristic, hardware)
    if found is None:
        raise InvalidValueError(f"{problem}: {heuristic.name} abstains; expected a decision")
    return found
