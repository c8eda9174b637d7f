"""Gain of fine-tuning the shipped model on one's own problems, and its cost elsewhere.

    python benchmarks/specialisation.py [--workloads bmm/tf32 mm/tf32]

A workload is one op in one precision of the validation set, whose complete spaces were timed. Half
of its problems are one's own: `torch-diode train --init-from shipped` gets only their timings.
Regret is then compared before and after on those, on the unseen other half, and on all other
problems. Runs on any machine, a minute per workload.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _live import made_with, results_file, save

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.hardware import known
from torch_diode.model.registry import shipped_model
from torch_diode.types.dataset import Dataset

ROOT = Path(__file__).parents[1]
CHIP = "nvidia-h200"
DATA = ROOT / "diode_datasets/matmul" / CHIP / "validation"
PARTS = ("own", "unseen", "elsewhere")


def kinds(dataset: Dataset) -> list[str]:
    """Op and precision of every problem."""
    found = (dataset.problem(int(row)) for row in dataset.problems.first)
    return [problem.kind for problem in found]


def divided(dataset: Dataset, workload: str, seed: int) -> dict[str, Dataset]:
    """One's own problems, others of the workload, and all others."""
    inside = np.array([kind == workload for kind in kinds(dataset)])
    own = np.zeros_like(inside)
    drawn = np.random.default_rng(seed).permutation(np.flatnonzero(inside))
    own[drawn[: len(drawn) // 2]] = True
    parts = {"own": own, "unseen": inside & ~own, "elsewhere": ~inside}
    return {name: dataset.take(mask[dataset.problems.ids]) for name, mask in parts.items()}


def torch_diode(*arguments: object) -> str:
    """Run a command that must succeed; return its output."""
    command = [sys.executable, "-m", "torch_diode", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def regrets(model: Path, data: Path) -> dict[str, float]:
    """Regret at 1, 3 and 5."""
    options = ("--model", model, "--dataset", data, "--score", "all", "--json")
    output = torch_diode("validate-model", *options)
    scores = json.loads(output)["scores"]["model"]["all"]
    return {f"@{score['k']}": score["geomean"] for score in scores[:3]}


def measured(workload: str, dataset: Dataset, shipped: Path, seed: int) -> dict[str, Any]:
    """One workload, before and after."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {}
        parts = divided(dataset, workload, seed)
        for part, timings in parts.items():
            files[part] = folder / f"{part}.parquet"
            write_dataset(timings, files[part])
        model = folder / "mine.pt"
        begun = time.monotonic()
        own = ("--dataset", files["own"], "--model", model)
        torch_diode("--seed", seed, "train", "--init-from", "shipped", *own)
        took = time.monotonic() - begun
        return {
            "workload": workload,
            "seconds": round(took),
            **{
                part: {
                    "problems": len(parts[part].problems),
                    "before": regrets(shipped, files[part]),
                    "after": regrets(model, files[part]),
                }
                for part in PARTS
            },
        }


def pooled(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """All workloads together, every problem with the same weight."""
    found: dict[str, Any] = {"workload": "all", "seconds": sum(row["seconds"] for row in rows)}
    for part in PARTS:
        counts = [row[part]["problems"] for row in rows]
        found[part] = {"problems": sum(counts)}
        for when in ("before", "after"):
            logs = {k: np.log([row[part][when][k] for row in rows]) for k in rows[0][part][when]}
            means = {k: float(np.exp(np.average(v, weights=counts))) for k, v in logs.items()}
            found[part][when] = {k: round(mean, 5) for k, mean in means.items()}
    return found


def show(row: dict[str, Any]) -> None:
    print(f"{row['workload']}, {row['seconds']} s")
    for part in PARTS:
        found = row[part]
        pairs = [
            f"{k} {found['before'][k]:.4f} -> {found['after'][k]:.4f}" for k in found["before"]
        ]
        print(f"  {part:10} {found['problems']:4} problems   {'   '.join(pairs)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", nargs="+", help="such as mm/tf32; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--output", type=Path, help="default: results/specialisation.json for a complete run"
    )
    options = parser.parse_args()
    shipped = shipped_model(known(CHIP))
    if shipped is None:
        sys.exit(f"there is no model of {CHIP} here; train one first")
    dataset = read_dataset(DATA)
    rows = []
    for workload in options.workloads or sorted(set(kinds(dataset))):
        rows.append(measured(workload, dataset, shipped.path, options.seed))
        show(rows[-1])
    rows.append(pooled(rows))
    show(rows[-1])
    data = str(DATA.relative_to(ROOT))
    output = options.output or results_file("specialisation", bool(options.workloads))
    save(output, {**made_with(CHIP, options.seed), "data": data, "rows": rows})


if __name__ == "__main__":
    main()
