"""The model's choice against ATen's on real-model problems, timed in one sweep. Needs a GPU.

    python benchmarks/selection_sweep.py [--problems 170] [--minutes 2]

For each problem the whole candidate space is ranked; ATen and the model's first four are timed.
Prints geometric means of time ratios and the worst choices; writes all of it as JSON. TMA
templates are left out, as in a plain compile.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import torch_diode as td
from torch_diode.candidates.space import candidate_space
from torch_diode.collection.campaign import Campaign, Group, Task
from torch_diode.collection.kernels import KernelLibrary
from torch_diode.collection.store import TimingStore
from torch_diode.files.atomic import write_text
from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import read_shapes
from torch_diode.hardware import known
from torch_diode.integration.template_source import template_source
from torch_diode.types.hardware import Hardware

ROOT = Path(__file__).parents[1]
SHAPES = ROOT / "diode_datasets/shapes/real_models.json"
MOST_FLOPS = 1e11
FIRST = 4


def plan(
    hardware: Hardware, heuristic: td.Heuristic, count: int, seed: int
) -> tuple[list[Task], dict[td.MMShape, td.Candidate]]:
    """Problems with the candidates to time, and the one the model would run."""
    problems = [p for p in read_shapes(SHAPES).problems if p.flops < MOST_FLOPS]
    random.Random(seed).shuffle(problems)
    tasks: list[Task] = []
    picks: dict[td.MMShape, td.Candidate] = {}
    for problem in problems[:count]:
        space = candidate_space(problem, hardware)
        space = space.take(
            ~space.is_template("decompose_k") & ~space.is_template("triton::mm_persistent_tma")
        )
        ranking = heuristic.rank(problem, space, hardware)
        if ranking is None:
            continue
        vendor = int(np.flatnonzero(space.is_template("aten"))[0])
        rows = dict.fromkeys([vendor, *map(int, ranking.order[:FIRST])])
        picks[problem] = space[int(ranking.order[0])]
        tasks.append((problem, space.take(np.array(list(rows)))))
    return tasks, picks


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=170)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--processes", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/selection.json")
    given = parser.parse_args()
    if not torch.backends.cuda.is_built():
        print("skipped: needs a GPU, and this torch is built without CUDA")
        return
    hardware = known(given.hardware)
    heuristic = td.ModelHeuristic(td.load_model("matmul", hardware=hardware))
    tasks, picks = plan(hardware, heuristic, given.problems, given.seed)
    library = KernelLibrary(template_source, hardware.units)
    releases = {"torch": torch.__version__.partition("+")[0]}
    campaign = Campaign([Group.of("all", tasks, library)], library, hardware, releases)
    with tempfile.TemporaryDirectory() as folder:
        with TimingStore(Path(folder)) as store:
            campaign.run(store, given.processes, time.monotonic() + 60 * given.minutes, print)
        times: dict[td.MMShape, dict[td.Candidate, float]] = {}
        for timing in read_dataset(folder):
            if timing.time_us is not None:
                times.setdefault(timing.problem, {})[timing.candidate] = timing.time_us
    rows = [
        {
            "problem": problem.key,
            "pick": str(picks[problem]),
            "over_aten": found[picks[problem]] / found[td.Candidate("aten")],
            "over_best_timed": found[picks[problem]] / min(found.values()),
        }
        for problem, found in times.items()
        if picks[problem] in found
    ]
    summary = {
        "problems": len(rows),
        "pick over ATen": geomean([row["over_aten"] for row in rows]),
        "pick over best timed": geomean([row["over_best_timed"] for row in rows]),
        "above 1.05 of ATen": sum(row["over_aten"] > 1.05 for row in rows),
    }
    for name, value in summary.items():
        print(f"{name:24} {value:.4g}")
    for row in sorted(rows, key=lambda row: -row["over_aten"])[:8]:
        print(f"{row['over_aten']:.3f}  {row['problem']:44} {row['pick']}")
    data = {"hardware": hardware.name, **releases, "seed": given.seed, **summary, "rows": rows}
    write_text(given.output, json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
