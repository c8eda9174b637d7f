"""Comparison of a model's first k candidates with a solution's configs, problem by problem."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.space import loops_over_k
from torch_diode.files.file_errors import naming_file
from torch_diode.files.json import read_json, write_json
from torch_diode.model.evaluation.regret import KS, Mask, RankedTimes
from torch_diode.model.registry import SHIPPED
from torch_diode.toolkit.datasets import DatasetSource
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.toolkit.validate import Validation, validate
from torch_diode.types.candidate import CONFIG_FIELDS
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.grouping import number_rows
from torch_diode.types.problem import OPS
from torch_diode.types.solution import Solution, SolutionConfig

_AS_FAST = 1.01
"""Within a percent is no slower: times of one kernel repeat no better."""
_LOOPS = "loops"
Regrets = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TopK:
    """The best of a model's first k candidates, against the best of a solution's configs."""

    regret: float
    ratio: float
    """Geometric mean of the model's time over the solution's; below 1 the model is faster."""
    worst_ratio: float
    no_slower: float
    """Share of the problems where the model is within a percent of the solution, or faster."""


@dataclass(frozen=True)
class Comparison:
    """A model against a solution on some problems."""

    problems: int
    solution_regret: float
    solution_with_aten_regret: float | None
    """None where ATen was not timed."""
    model: dict[int, TopK]
    """By k."""

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON has it."""
        return {
            "problems": self.problems,
            "solution": {
                "regret": self.solution_regret,
                "with_aten_regret": self.solution_with_aten_regret,
            },
            "model": {f"top_{k}": asdict(top) for k, top in self.model.items()},
        }


@dataclass(frozen=True)
class MaxAutotuneValidation:
    """A model against a solution, in total and by operation."""

    model: Path
    dataset_name: str
    solution: Solution
    solution_path: Path
    scored_on: str
    notes: list[str]
    overall: Comparison
    by_op: dict[str, Comparison]

    def to_dict(self) -> dict[str, Any]:
        """The analysis as JSON has it."""
        return {
            "model": str(self.model),
            "dataset": self.dataset_name,
            "solution": {
                "path": str(self.solution_path),
                "name": self.solution.name,
                "configs": len(self.solution.configs),
            },
            "judged_on": self.scored_on,
            "notes": self.notes,
            "all": self.overall.to_dict(),
            "by_op": {op: part.to_dict() for op, part in self.by_op.items()},
        }


def validate_max_autotune(
    dataset: DatasetSource,
    solution: Path,
    model: str | os.PathLike[str] = SHIPPED,
    *,
    hardware: str | None = None,
    ops: Sequence[str] = (),
    score: str = "auto",
    batch_size: int = 256,
    progress: ProgressCallback = log_progress,
) -> MaxAutotuneValidation:
    """Compare a model's first candidates with the configs of a solution file.

    Where there is no such file, it is written with the fastest config of each problem, which is
    what an exhaustive max-autotune would settle on.
    """
    configs = _read_solution(solution)
    result = validate(
        model,
        dataset,
        hardware=hardware,
        ops=ops,
        score=score,
        batch_size=batch_size,
        baselines=False,
        progress=progress,
    )
    if result.hardware.kind == "cpu":
        raise EmptySelectionError(
            f"{result.dataset_name}: got timings of {result.hardware.name}; expected those of a "
            "GPU, since a solution has configs of Triton's templates"
        )
    if configs is None:
        configs = _write_fastest(result, solution)
        text = f"{solution}: did not exist; written with the fastest config timed on each problem"
        progress(Progress(message=f"{text}, which an exhaustive max-autotune would settle on"))
    return _compare(result, configs, solution)


def _read_solution(path: Path) -> Solution | None:
    """The solution in a file; None where there is no file, but a folder to write it in."""
    with naming_file(path):
        there, could_be = path.exists(), path.parent.is_dir()
    if not there and not could_be:
        raise FileFaultError(
            f"{path}: no such file, nor a folder {path.parent} to make it in; check the path"
        )
    if not there:
        return None
    solution: Solution = read_json(path, Solution.from_dict)
    return solution


def _write_fastest(result: Validation, path: Path) -> Solution:
    """Write the fastest Triton config of each problem as a solution file."""
    table = result.evaluated.table
    configs = np.flatnonzero(table.is_config)
    if not len(configs):
        raise EmptySelectionError(
            f"{result.dataset_name}: got timings of ATen alone; expected configs to make a "
            "solution of"
        )
    listed = []
    for row in configs[RankedTimes.by(table.group[configs], table.time_us[configs]).first]:
        timing = result.dataset[int(table.rows[row])]
        assert timing.candidate.config is not None
        problem = timing.problem
        sizes = {"op": problem.op, "M": problem.M, "N": problem.N, "K": problem.K}
        listed.append({**sizes, **timing.candidate.config.to_dict()})
    data = {"name": f"fastest configs of {Path(result.dataset_name).name}", "configs": listed}
    write_json(path, data, 2, overwrite=False)
    return Solution.from_dict(data)


def _compare(result: Validation, solution: Solution, path: Path) -> MaxAutotuneValidation:
    table = result.evaluated.table
    chosen = _matching_rows(result, solution)
    alone = table.subset_regrets(chosen)
    both = table.subset_regrets(chosen | table.is_aten)
    ids = result.evaluated.problems
    known = np.isfinite(alone[ids])
    if not known.any():
        raise EmptySelectionError(
            f"{path}: got configs of which none was timed on any problem of "
            f"{result.dataset_name}; expected some; use the solution of this data"
        )
    notes = list(result.notes)
    if not known.all():
        left = int(np.count_nonzero(~known))
        notes.append(f"{left:,} problems left out: none of the solution's configs was timed there")
    ids, regrets = ids[known], result.evaluated.regrets[known]
    aten = both[ids] if table.is_aten.any() else None
    op_names = np.array(OPS)[table.arrays.op[ids]]

    def part(mask: Mask) -> Comparison:
        return _comparison(regrets[mask], alone[ids][mask], None if aten is None else aten[mask])

    return MaxAutotuneValidation(
        result.model,
        result.dataset_name,
        solution,
        path,
        result.holdout.describe(len(ids)),
        notes,
        part(np.ones(len(ids), bool)),
        {op: part(op_names == op) for op in OPS if (op_names == op).any()},
    )


def _comparison(model: Regrets, solution: Regrets, aten: Regrets | None) -> Comparison:
    top = {}
    for column, k in enumerate(KS):
        ratio = model[:, column] / solution
        top[k] = TopK(
            _geomean(model[:, column]),
            _geomean(ratio),
            round(float(ratio.max()), 5),
            round(float(np.mean(ratio <= _AS_FAST)), 5),
        )
    with_aten = None if aten is None else _geomean(aten)
    return Comparison(len(model), _geomean(solution), with_aten, top)


def _geomean(values: Regrets) -> float:
    return round(float(np.exp(np.log(values).mean())), 5)


def _matching_rows(result: Validation, solution: Solution) -> Mask:
    """The rows whose config the solution has for their problem."""
    table, dataset = result.evaluated.table, result.dataset
    fields = {name: dataset.values(name)[table.rows] for name in CONFIG_FIELDS}
    fields[_LOOPS] = _loops(dataset)[table.rows]
    ops = np.array(OPS)[table.arrays.op[table.group]]
    by_sizes = _rows_by_sizes(result) if any(c.sizes for c in solution.configs) else {}
    everywhere, nowhere = slice(None), np.zeros(0, np.int64)
    matches = np.zeros(len(table.rows), bool)
    for config in solution.configs:
        rows = by_sizes.get(config.sizes, nowhere) if config.sizes else everywhere
        found = table.is_config[rows] & _has(config, fields, rows)
        matches[rows] |= found & (ops[rows] == config.op) if config.op else found
    return matches


def _rows_by_sizes(result: Validation) -> dict[tuple[int, ...], npt.NDArray[np.int64]]:
    """The rows of each M, N and K."""
    rows = result.evaluated.table.rows
    columns = [result.dataset.values(name)[rows] for name in "MNK"]
    ids = number_rows(columns, len(rows))
    parts = np.split(np.argsort(ids, kind="stable"), np.cumsum(np.bincount(ids))[:-1])
    return {tuple(int(column[part[0]]) for column in columns): part for part in parts}


def _has(config: SolutionConfig, fields: dict[str, npt.NDArray[Any]], rows: Any) -> Mask:
    matches: Any = True
    for name, value in config.fields:
        same = fields[name][rows] == value
        matches = matches & (same | ~fields[_LOOPS][rows] if name == "num_stages" else same)
    return np.asarray(matches)


def _loops(dataset: Dataset) -> Mask:
    """The timings of kernels that stages make a difference to."""
    codes, names = dataset.codes("template")
    loops = np.zeros(len(dataset), bool)
    for code, name in enumerate(names):
        matter = loops_over_k(name, dataset.values("block_k"), dataset.values("K"))
        loops |= (codes == code) & matter
    return loops
