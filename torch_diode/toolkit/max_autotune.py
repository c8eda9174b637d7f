"""A model's first k candidates against a solution's configs, problem by problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.gpu.k_loop import stages_matter
from torch_diode.files.file_errors import naming_file
from torch_diode.files.json import write_json
from torch_diode.files.solutions import read_solution
from torch_diode.model.evaluation.regret import KS, Mask, RankedTimes, subset_regrets
from torch_diode.toolkit.validate import Validation
from torch_diode.types.candidate import CONFIG_FIELDS
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.problem import OPS
from torch_diode.types.solution import Solution, SolutionConfig

__all__ = ["KS", "analyse", "derive", "solution_for"]

_AS_FAST = 1.01
"""Within a percent is no slower: times of one kernel repeat no better."""
_LOOPS = "loops"
Regrets = npt.NDArray[np.float64]


def solution_for(path: Path) -> Solution | None:
    """The solution in a file; None where there is no file, but a folder to make it in."""
    with naming_file(path):
        there, could_be = path.exists(), path.parent.is_dir()
    if not there and not could_be:
        raise FileFaultError(
            f"{path}: no such file, nor a folder {path.parent} to make it in; check the path"
        )
    return read_solution(path) if there else None


def derive(found: Validation, path: Path) -> Solution:
    """The fastest Triton config of each problem, written as a solution file."""
    table = found.judged.table
    configs = np.flatnonzero(table.is_config)
    if not len(configs):
        raise EmptySelectionError(
            f"{found.source}: got timings of ATen alone; expected configs to make a solution of"
        )
    listed = []
    for row in configs[RankedTimes.by(table.group[configs], table.time_us[configs]).first]:
        timing = found.dataset[int(table.rows[row])]
        assert timing.candidate.config is not None
        problem = timing.problem
        sizes = {"op": problem.op, "M": problem.M, "N": problem.N, "K": problem.K}
        listed.append({**sizes, **timing.candidate.config.to_dict()})
    data = {"name": f"fastest configs of {found.source.name}", "configs": listed}
    write_json(path, data, 2)
    return Solution.from_dict(data)


def analyse(found: Validation, solution: Solution, path: Path) -> dict[str, Any]:
    """The comparison, in total and by operation."""
    table = found.judged.table
    chosen = matching_rows(found, solution)
    alone = subset_regrets(table.group, table.time_us, chosen)
    both = subset_regrets(table.group, table.time_us, chosen | table.is_aten)
    ids = found.judged.problems
    known = np.isfinite(alone[ids])
    if not known.any():
        raise EmptySelectionError(
            f"{path}: got configs of which none was timed on any problem of {found.source}; "
            "expected some; use the solution of this data"
        )
    notes = list(found.notes)
    if not known.all():
        left = int(np.count_nonzero(~known))
        notes.append(f"{left:,} problems left out: none of the solution's configs was timed there")
    ids, regrets = ids[known], found.judged.regrets[known]
    aten = both[ids] if table.is_aten.any() else None
    ops = np.array(OPS)[table.arrays.op[ids]]
    parts = {op: ops == op for op in OPS if (ops == op).any()}
    every = _part(regrets, alone[ids], aten, np.ones(len(ids), bool))
    return {
        "model": str(found.path),
        "dataset": str(found.source),
        "solution": {"path": str(path), "name": solution.name, "configs": len(solution.configs)},
        "judged_on": found.scored.told(len(ids)),
        "notes": notes,
        "all": every,
        "by_op": {op: _part(regrets, alone[ids], aten, mask) for op, mask in parts.items()},
    }


def _part(regrets: Regrets, solution: Regrets, aten: Regrets | None, mask: Mask) -> dict[str, Any]:
    own, theirs = regrets[mask], solution[mask]
    model = {}
    for column, k in enumerate(KS):
        ratio = own[:, column] / theirs
        model[f"top_{k}"] = {
            "regret": _mean(own[:, column]),
            "ratio": _mean(ratio),
            "worst_ratio": round(float(ratio.max()), 5),
            "no_slower": round(float(np.mean(ratio <= _AS_FAST)), 5),
        }
    return {
        "problems": int(np.count_nonzero(mask)),
        "solution": {
            "regret": _mean(theirs),
            "with_aten_regret": None if aten is None else _mean(aten[mask]),
        },
        "model": model,
    }


def _mean(values: Regrets) -> float:
    return round(float(np.exp(np.log(values).mean())), 5)


def matching_rows(found: Validation, solution: Solution) -> Mask:
    """The rows whose config the solution names for their problem."""
    table, dataset = found.judged.table, found.dataset
    fields = {name: dataset.values(name)[table.rows] for name in CONFIG_FIELDS}
    fields[_LOOPS] = _loops(dataset)[table.rows]
    result = np.zeros(len(table.rows), bool)
    general, special = _sorted_out(solution)
    ops = np.array(OPS)[table.arrays.op[table.group]]
    for config in general:
        here = table.is_config & ((ops == config.op) if config.op else True)
        result |= here & _has(config, fields, slice(None))
    if special:
        _match_special(special, found, fields, result)
    return result


def _sorted_out(
    solution: Solution,
) -> tuple[list[SolutionConfig], dict[tuple[int, int, int], list[SolutionConfig]]]:
    """Configs for every problem, and those for certain sizes by these."""
    general: list[SolutionConfig] = []
    special: dict[tuple[int, int, int], list[SolutionConfig]] = {}
    for config in solution.configs:
        if config.sizes is None:
            general.append(config)
        else:
            special.setdefault(config.sizes, []).append(config)
    return general, special


def _match_special(
    special: dict[tuple[int, int, int], list[SolutionConfig]],
    found: Validation,
    fields: dict[str, npt.NDArray[Any]],
    result: Mask,
) -> None:
    table = found.judged.table
    first = found.dataset.problems.first
    sizes = np.stack([found.dataset.values(name)[first] for name in "MNK"], axis=1)
    order = np.argsort(table.group, kind="stable")
    heads = np.flatnonzero(np.diff(table.group[order])) + 1
    for rows in np.split(order, heads):
        number = table.group[rows[0]]
        op = OPS[table.arrays.op[number]]
        m, n, k = sizes[number].tolist()
        for config in special.get((m, n, k), ()):
            if config.op in (None, op):
                result[rows] |= table.is_config[rows] & _has(config, fields, rows)


def _has(config: SolutionConfig, fields: dict[str, npt.NDArray[Any]], rows: Any) -> Mask:
    found: Any = True
    for name, value in config.fields:
        same = fields[name][rows] == value
        found = found & (same | ~fields[_LOOPS][rows] if name == "num_stages" else same)
    return np.asarray(found)


def _loops(dataset: Dataset) -> Mask:
    """The timings of kernels that stages make a difference to."""
    codes, names = dataset.codes("template")
    found = np.zeros(len(dataset), bool)
    for code, name in enumerate(names):
        matter = stages_matter(name, dataset.values("block_k"), dataset.values("K"))
        found |= (codes == code) & matter
    return found
