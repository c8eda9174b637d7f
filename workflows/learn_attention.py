"""Learn flex attention's forward configs for a chip from timings, as a table, and judge it.

The table has a row for each precision and head dimension, with the measured configs by their mean
loss over the problems' best. Judged on held-out problems, five times on another fifth of the sizes,
among what fits; the shipped table is then made of all problems.

    torch-diode convert a100_flex_attention.txt.gz --collected 2024-08 --output a100.parquet
    python workflows/learn_attention.py a100.parquet
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.files.atomic import write_text
from torch_diode.files.attention.datasets import read_attention
from torch_diode.heuristics.attention_table import DECISION, AttentionTable
from torch_diode.types.attention.dataset import AttentionDataset
from torch_diode.types.candidate import KernelConfig

_FOLDS = 5
_UNFIT = 1e6
"""Loss of a config that ran on none of a row's problems: last."""
_INDUCTORS = {
    "nvidia-a100": {
        ("bfloat16", 64): (128, 64, 3, 4),
        ("bfloat16", 128): (128, 64, 3, 8),
        ("bfloat16", 256): (32, 64, 3, 4),
        ("float32", 64): (128, 32, 3, 4),
        ("float32", 128): (128, 32, 3, 4),
        ("float32", 256): (64, 16, 3, 4),
    },
    "nvidia-h100": {
        ("bfloat16", 64): (128, 128, 3, 4),
        ("bfloat16", 128): (128, 64, 3, 8),
        ("bfloat16", 256): (64, 32, 3, 4),
        ("float32", 64): (128, 32, 3, 4),
        ("float32", 128): (32, 64, 3, 4),
        ("float32", 256): (32, 32, 3, 4),
    },
}
"""Inductor's own configs of 2.9 to 2.15; for other head dimensions 64x64, 3 stages, 4 warps."""
_ELSEWHERE = (64, 64, 3, 4)

Times = npt.NDArray[np.float64]
Key = tuple[str, int]


@dataclass(frozen=True)
class Problems:
    """Times by problem and config, infinite for what did not run; and each problem's row."""

    times: Times
    configs: tuple[KernelConfig, ...]
    keys: tuple[Key, ...]
    folds: npt.NDArray[np.int64]

    @property
    def losses(self) -> Times:
        """Logarithm of the time over the problem's best."""
        return np.asarray(np.log(self.times / self.times.min(1, keepdims=True)))


def main() -> int:
    """Learn, judge, write the table and its card; exit code 0 if that was done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("timings", type=Path)
    parser.add_argument("--output", type=Path, help="default: where shipped tables lie")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dataset = read_attention(options.timings)
    (hardware,) = set(dataset.texts("hardware"))
    problems = arrange(dataset, options.seed)
    scores = judge(problems, hardware)
    for name, values in scores.items():
        print(f"{name:32} {values}")
    rows = {
        ("forward", *key): tuple(problems.configs[i] for i in order)
        for key, order in learn(problems, np.ones(len(problems.keys), bool)).items()
    }
    table = AttentionTable(rows, hardware=hardware)
    output = options.output or Path("trained_models") / DECISION / hardware / "forward.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    provenance = {name: list(texts) for name, texts in dataset.provenance.items()}
    about = {"provenance": provenance, "problems": len(problems.keys), "held_out": scores}
    content = table.to_dict()
    write_text(output, _json({**content, **about}))
    write_text(output.with_suffix(".md"), card(hardware, dataset, problems, scores))
    return 0


def arrange(dataset: AttentionDataset, seed: int) -> Problems:
    """The timings of a dataset by problem; those on which nothing ran are left out."""
    groups = dataset.problems
    names = ("block_m", "block_n", "num_stages", "num_warps")
    columns = np.stack([dataset.values(name) for name in names], 1)
    sizes, codes = np.unique(columns, axis=0, return_inverse=True)
    times = np.full((len(groups), len(sizes)), np.inf)
    measured = dataset.values("time_us").astype(np.float64)
    times[groups.ids, codes.ravel()] = np.where(np.isnan(measured), np.inf, measured)
    shapes = np.stack([dataset.values(name)[groups.first] for name in ("B", "H", "M", "N", "D")], 1)
    distinct, shape = np.unique(shapes, axis=0, return_inverse=True)
    folds = np.random.default_rng(seed).integers(0, _FOLDS, len(distinct))[shape.ravel()]
    dtypes = np.array(dataset.texts("dtype"))[groups.first]
    keys = tuple(
        ("float32" if dtype == "float32" else "bfloat16", int(head_dim))
        for dtype, head_dim in zip(dtypes, shapes[:, 4], strict=True)
    )
    configs = tuple(
        KernelConfig((("block_m", int(m)), ("block_n", int(n))), int(stages), int(warps))
        for m, n, stages, warps in sizes
    )
    ran = np.isfinite(times).any(1)
    kept = tuple(key for key, each in zip(keys, ran, strict=True) if each)
    return Problems(times[ran], configs, kept, folds[ran])


def learn(problems: Problems, train: npt.NDArray[np.bool_]) -> dict[Key, list[int]]:
    """For each row the configs that ran, by their mean loss."""
    losses = np.minimum(problems.losses, np.log(_UNFIT))
    rows = {}
    for key in sorted(set(problems.keys)):
        mask = train & np.array([each == key for each in problems.keys])
        mean = losses[mask].mean(0)
        rows[key] = [int(i) for i in np.argsort(mean, kind="stable") if mean[i] < np.log(2) * 10]
    return rows


def judge(problems: Problems, hardware: str) -> dict[str, float]:
    """Geometric mean of the time over the best, of the first 1 to 3 and of Inductor's own."""
    chosen = {k: np.zeros(len(problems.keys)) for k in (1, 2, 3)}
    for fold in range(_FOLDS):
        rows = learn(problems, problems.folds != fold)
        for i in np.flatnonzero(problems.folds == fold):
            order = [j for j in rows[problems.keys[i]] if np.isfinite(problems.times[i, j])]
            for k, losses in chosen.items():
                losses[i] = problems.losses[i, order[:k]].min()
    scores = {f"regret@{k}": _geomean(losses) for k, losses in chosen.items()}
    own = np.array([_own_loss(problems, i, hardware) for i in range(len(chosen[1]))])
    ran = np.isfinite(own)
    if ran.any():
        scores["Inductor's own, where it was timed"] = _geomean(own[ran])
        scores["regret@1, the same problems"] = _geomean(chosen[1][ran])
    return scores


def _own_loss(problems: Problems, i: int, hardware: str) -> float:
    """Loss of Inductor's own config on a problem; infinite where it was not timed or did not
    run."""
    sizes = [config.sizes for config in problems.configs]
    own = _INDUCTORS.get(hardware, {}).get(problems.keys[i], _ELSEWHERE)
    return float(problems.losses[i, sizes.index(own)]) if own in sizes else np.inf


def _geomean(losses: Times) -> float:
    return round(float(np.exp(losses.mean())), 4)


def _json(data: dict[str, Any]) -> str:
    """JSON with one line per row."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in data.pop("rows"))
    return json.dumps(data, indent=1)[:-2] + f',\n "rows": [\n{rows}\n ]\n}}\n'


def card(
    hardware: str, dataset: AttentionDataset, problems: Problems, scores: dict[str, float]
) -> str:
    """The table's card."""
    source, date = (", ".join(dataset.provenance[name]) for name in ("source", "collected"))
    counts = f"{len(problems.keys):,} problems, {len(problems.configs)} configs each"
    lines = [
        f"# Flex attention forward on {hardware}: a table of configs",
        "",
        f"From {source}, {date}: {counts}, head dimensions 16 to 256, timed by Inductor's "
        "autotuning with the launch. The rows are not in this repository. "
        "`workflows/learn_attention.py` makes the table.",
        "",
        "Held out by size, five folds, geometric mean of the time over the problem's best among "
        "the measured configs that ran:",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {name} | {value} |" for name, value in scores.items()),
        "",
        "Timings of torch and Triton of 2024, on masks that the log does not tell: Inductor's own "
        "configs, chosen since, are others. So the table decides nothing alone. With max-autotune "
        "it leaves out configs of Inductor's list that it has at a low place, and Inductor's own "
        "stays.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
