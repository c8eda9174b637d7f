#!/usr/bin/env python3
"""Time the same candidates as Inductor's own fixed-size kernels and as the sweep's, and compare.

    python workflows/measure_fidelity.py --output fidelity/ --minutes 3.2
    python workflows/measure_fidelity.py --output fixed/ --sweep train/ --problems 3000 --configs 8
    python workflows/measure_fidelity.py --analyse static.parquet sweep.parquet

Half of a problem's candidates are those the shipped model ranks high (the analytical heuristic if
there is no model), half are spread over its order; ATen is always included. Processes without a GPU
lower the problems and compile both kinds of kernels; one with the GPU times each problem as soon as
its kernels are ready, both kinds in turn. With `--sweep` problems are drawn from a sweep's data
set, each with its fastest configs, and only the fixed-size kernels are timed: many more in the same
minutes. After `--minutes` the results so far are written. The table needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Keep Inductor from starting compile workers; must be set before it is imported.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch
from _fidelity_bench import STATIC, SWEEP, bench
from _fidelity_plan import drawn_problems, make_plans, swept_plans
from _fidelity_run import Run

from torch_diode.collection.cluster.node import compiling_processes
from torch_diode.collection.kernels.compile import use_inductors_ptxas
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.workers.pool import WorkerPool
from torch_diode.files.atomic import write_text
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.shape_sets import read_shapes
from torch_diode.hardware import known
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.model.registry import SHIPPED
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError, EmptySelectionError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing
from workflows.measuring.fidelity import agreements, as_table, by_size, size_class
from workflows.measuring.pipeline import GRACE_S
from workflows.measuring.private_caches import private_caches
from workflows.measuring.worker_state import seconds_alive

FILES = {STATIC: "static.parquet", SWEEP: "sweep.parquet"}


def measure(given: argparse.Namespace, start: float) -> None:
    """Plan, run, and write the two files as it goes."""
    hardware = known(given.hardware)
    use_inductors_ptxas()
    # First of all: once imported, Inductor may initialise CUDA, and processes forked
    # after that cannot use the GPU.
    with WorkerPool[Any, Any]([lambda mark: bench(hardware, given.seed, mark)]) as benches:
        benches.start()
        run = make_run(given, hardware, start)
        print(
            f"{len(run.plans)} problems, {sum(len(p.candidates) - 1 for p in run.plans):,} "
            f"configs, {len(run.specs()):,} sweep kernels; {time.monotonic() - start:.0f} s so far",
            flush=True,
        )
        run.go(benches)
    for fault, count in run.faults.most_common(12):
        print(f"{count:6,}  {fault}")
    done = len({timing.problem for timing in run.timings})
    print(f"{done} problems timed, {len(run.timings):,} timings, {time.monotonic() - start:.0f} s")


def make_run(given: argparse.Namespace, hardware: Hardware, start: float) -> Run:
    """Problems, candidates and output of a run."""
    from torch_diode.integration import registration
    from torch_diode.integration.capture.template_source import template_source
    from torch_diode.integration.hooks.torch_compat import dataset_provenance

    torch.set_num_threads(1)  # threads would not survive the fork
    registration.disable()
    if given.sweep:
        data = read_dataset(given.sweep).filter(hardware=hardware.name)
        plans = swept_plans(data, given.problems, given.configs, given.seed)
        if not plans:
            raise EmptySelectionError(
                f"{given.sweep}: got no timings of Triton configs on {hardware.name}; expected a "
                "sweep's; give another data set or --hardware"
            )
    else:
        problems = posed_problems(given, hardware)
        plans = make_plans(problems, hardware, best_heuristic(hardware), given.configs, given.seed)
    today = dataset_provenance(seed=str(given.seed))

    def keep(timings: Sequence[Timing]) -> None:
        for method, name in FILES.items():
            chosen = [timing for timing in timings if timing.method == method]
            if chosen:
                write_dataset(Dataset.from_timings(chosen, today), given.output / name)

    library = KernelLibrary(template_source, hardware.units)
    deadline = start + 60 * given.minutes - GRACE_S
    swept = given.sweep is not None
    return Run(plans, hardware, library, given.processes, deadline, keep, swept)


def posed_problems(given: argparse.Namespace, hardware: Hardware) -> list[MMShape]:
    """Problems of a shape set, or drawn."""
    if not given.shapes:
        return drawn_problems(given.problems, given.seed, hardware)
    problems = list(read_shapes(given.shapes).problems)
    random.Random(given.seed).shuffle(problems)
    return problems[: given.problems]


def best_heuristic(hardware: Hardware) -> Heuristic:
    """The shipped model, or the analytical heuristic."""
    from torch_diode.integration import default_heuristic
    from torch_diode.integration.settings import Settings

    found = default_heuristic.default_heuristic(hardware, Settings(model=SHIPPED))
    if found is None:
        print(f"analytical heuristic, since {hardware.name}: {default_heuristic.NO_MODEL}")
    return found or AnalyticalHeuristic()


def report(static: Path, sweep: Path, output: Path | None = None) -> None:
    """Print the table of two files; also write it as JSON if requested."""
    first, second = read_dataset(static), read_dataset(sweep)
    hardware = known(first.texts("hardware")[0])
    found = agreements(first, second)
    rows = by_size(found, hardware)
    print(f"{hardware.name}, Inductor's fixed-size kernels against the sweep's")
    print(as_table(rows))
    print("least faithful:")
    for one in sorted(found, key=lambda a: -a.regret)[:5]:
        print(
            f"  regret {one.regret:.3f}  rank corr. {one.rank_correlation:.3f}  "
            f"{size_class(one.problem, hardware):6}  {one.problem}"
        )
    if output is not None:
        data = {"hardware": hardware.name, "sizes": [row.to_dict() for row in rows]}
        write_text(output, json.dumps(data, indent=1) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path(), help="directory of the two files")
    parser.add_argument("--problems", type=int, default=104)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--shapes", type=Path, help="shape set to take problems from")
    source.add_argument("--sweep", type=Path, help="data set to take problems and configs from")
    parser.add_argument("--configs", type=int, default=30, help="of each problem, besides ATen")
    parser.add_argument(
        "--minutes", type=float, default=3.2, help="time limit; results so far are written"
    )
    parser.add_argument("--processes", type=int, default=compiling_processes())
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--analyse", nargs=2, type=Path, metavar=("STATIC", "SWEEP"))
    parser.add_argument("--json", type=Path, help="also write the table there")
    return parser


def main() -> int:
    given = _parser().parse_args()
    try:
        if given.analyse:
            report(*given.analyse, given.json)
            return 0
        if not torch.backends.cuda.is_built():
            print("skipped: needs a GPU, and this torch is built without CUDA")
            return 0
        with private_caches():
            measure(given, time.monotonic() - seconds_alive())
        if given.sweep is None:
            report(*(given.output / FILES[method] for method in (STATIC, SWEEP)), given.json)
    except DiodeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
