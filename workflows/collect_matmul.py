#!/usr/bin/env python3
"""Collect the shipped data sets: training, the vendor's kernel alone, validation.

    python workflows/collect_matmul.py train --output timings/ --minutes 10
    python workflows/collect_matmul.py vendor --output vendor/ --problems 100000 --minutes 2
    python workflows/collect_matmul.py validation --output validation/ --minutes 10
    python workflows/collect_matmul.py recheck --output again/ --dataset validation/ --refine
    python workflows/collect_matmul.py missing --output again/ --dataset validation/

`train`: classes of problems that share kernels (`measuring/problem_classes.py`), each with a random
part of its configs, half of them ranked high by the analytical heuristic: together the classes
cover the space, and every problem has good candidates. With `--ranked` the configs are those the
shipped model ranks first, shared by the classes of a kind. `vendor`: ATen alone, on very many
problems. `validation`: the complete space of fewer problems, some of them of real models, the
fastest candidates timed again until the best time's noise is within half a percent. `recheck`: the
contenders of a validation set again, together: those measured or predicted near the best, since a
time far above the prediction is more often a bad measurement than a bad prediction. `missing`:
candidates without a timing, for when the space has changed since a data set was collected. No
problem of `train` or `vendor` has the op and sizes of one of `validation` or of the real models.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from _collect_problems import (
    VALIDATION_ROUNDS,
    never_trained_on,
    validation_problems,
    vendor_problems,
)
from _collect_tasks import contenders, missing, ranked_group, training_group, validation_group

from torch_diode.candidates.gpu.eligibility import arch_number
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.kernels.outcome import CompileOutcome
from torch_diode.collection.plan import Group, Task, kind_name, kind_of
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.sweep_run import SweepRun
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.workers.compile_ahead import CompileAhead
from torch_diode.collection.workers.scheduler import GroupReport
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.hardware.versions import versions
from torch_diode.integration.capture.template_source import template_source
from torch_diode.integration.hooks.torch_compat import dataset_provenance
from torch_diode.types.candidate import CONFIG_FIELDS
from torch_diode.types.hardware import Hardware
from workflows.measuring.problem_class import ProblemClass
from workflows.measuring.problem_classes import training_classes
from workflows.measuring.vendor_sweep import VendorSweep
from workflows.measuring.worker_state import seconds_alive

BAND = 0.005


def run_sweep(
    groups: list[Group], given: argparse.Namespace, start: float, band: float | None = None
) -> None:
    """Compile and time groups, printing progress, until done or out of time."""
    hardware = known(given.hardware)
    library = KernelLibrary(template_source, hardware.units)
    print(f"planned {len(groups)} groups in {time.monotonic() - start:.0f} s", flush=True)
    if given.plan:
        print(f"{sum(len(g.specs) for g in groups)} kernels")
        for group in groups:
            timings = sum(len(c) for _, c in group.tasks)
            print(f"{group.name:34} {len(group.specs):6} kernels {timings:8} timings")
        return
    deadline = start + 60 * given.minutes
    if given.compile_only:
        compile_only(groups, library, hardware, given.processes, deadline)
        return
    store = TimingStore(given.output, dataset_provenance())
    done = {problem for _, _, problem in store.done()}
    left = [replace(g, tasks=tuple(t for t in g.tasks if t[0] not in done)) for g in groups]
    groups = [group for group in left if group.tasks]
    settings = TimingSettings(library, hardware, versions(), given.seed, band)
    sweep_run = SweepRun(groups, settings)
    reports: list[GroupReport] = []

    def show(report: GroupReport) -> None:
        reports.append(report)
        rate = report.timings / max(report.waited_s + report.timed_s, 1e-9)
        print(
            f"{time.monotonic() - start:6.0f} s  {report.name:34} {report.problems:4} problems "
            f"{report.timings:7} timings, waited {report.waited_s:5.1f} s, timed "
            f"{report.timed_s:5.1f} s, {rate:6.0f}/s, stalled {report.stalled}, "
            f"wrong {report.wrong}",
            flush=True,
        )

    with store:
        outcomes = sweep_run.run(store, given.processes, deadline, show)
    total = sum(r.timings for r in reports)
    spent = time.monotonic() - start
    print(
        f"{total} timings of {sum(r.problems for r in reports)} problems in {spent:.0f} s: "
        f"{total / spent:.0f}/s"
    )
    summary = json.dumps([asdict(r) for r in reports], indent=1)
    (given.output / "summary.txt").write_text(summary)
    write_resources(outcomes, given.output / "kernels.csv")


def compile_only(
    groups: Iterable[Group],
    library: KernelLibrary,
    hardware: Hardware,
    processes: int,
    deadline: float,
) -> None:
    """Fill Triton's cache for a later run."""
    once = dict.fromkeys(spec for group in groups for spec in group.specs)
    ahead = CompileAhead(library.jobs(once), arch_number(hardware.arch), processes)
    try:
        ahead.assign_jobs()
        while len(ahead.outcomes) < len(once) and (left := deadline - time.monotonic()) > 0:
            ahead.compiled(min(left, 60.0))
        print(f"compiled {len(ahead.outcomes)} of {len(once)} kernels", flush=True)
    finally:
        ahead.stop()


def is_chosen(problem_class: ProblemClass, patterns: Sequence[str] | None) -> bool:
    """True if a class matches one of the patterns, or there are none."""
    return not patterns or any(fnmatch(problem_class.name, text) for text in patterns)


def check_any_chosen(chosen: Sequence[Any], patterns: Sequence[str] | None) -> None:
    """Exit where nothing is left to time."""
    if not chosen:
        sys.exit(f"--classes: got {patterns}, which no class matches; expected such as '*tf32*'")


def run_train(given: argparse.Namespace, start: float) -> None:
    """Time training problems."""
    hardware = known(given.hardware)
    chosen = [s for s in training_classes() if is_chosen(s, given.classes)]
    check_any_chosen(chosen, given.classes)
    make: Callable[..., Group] = training_group
    units: list[Any] = chosen
    if given.ranked:
        kinds: dict[tuple[str, ...], list[ProblemClass]] = {}
        for s in chosen:
            kinds.setdefault((s.op, s.precision, s.layout, s.bias), []).append(s)
        make, units = ranked_group, list(kinds.values())
    never = never_trained_on()
    plans = [
        (unit, hardware, given.problems or 250, given.configs, given.seed + i, never)
        for i, unit in enumerate(units)
    ]
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        groups = pool.starmap(make, plans, chunksize=1)
    run_sweep(groups, given, start)


def run_validation(given: argparse.Namespace, start: float) -> None:
    """Time the complete space of validation problems."""
    hardware = known(given.hardware)
    chosen = [(s, p) for s, p in validation_problems(given.round) if is_chosen(s, given.classes)]
    check_any_chosen(chosen, given.classes)
    if given.problems:
        chosen = [(s, p[: given.problems]) for s, p in chosen]
    plans = [(s.name, p, hardware) for s, p in chosen]
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        groups = pool.starmap(validation_group, plans, chunksize=1)
    run_sweep(groups, given, start, BAND)


def run_again(given: argparse.Namespace, start: float) -> None:
    """Time a part of a data set again."""
    hardware = known(given.hardware)
    library = KernelLibrary(template_source, hardware.units)
    dataset = read_dataset(given.dataset)
    choose = contenders if given.what == "recheck" else missing
    kinds: dict[str, list[Task]] = {}
    for problem, candidates in choose(dataset, hardware):
        kinds.setdefault(kind_name(kind_of(problem)), []).append((problem, candidates))
    groups = [Group.of(n, tasks, library) for n, tasks in kinds.items()]
    run_sweep(groups, given, start, BAND if given.refine else None)


def run_vendor(given: argparse.Namespace, start: float) -> None:
    """Time ATen alone."""
    hardware = known(given.hardware)
    problems = vendor_problems(given.problems or 100_000, given.seed)
    print(f"planned {len(problems)} problems in {time.monotonic() - start:.0f} s", flush=True)
    if given.plan:
        return
    device = torch.device("cuda", torch.cuda.current_device())
    timer = CudaTimer(device, hardware.l2_bytes, given.seed)
    sweep = VendorSweep(hardware.name, timer, versions(), seed=given.seed)
    # In pieces, so that an interrupted run has problems of every kind.
    pieces = [problems[i::20] for i in range(20)]
    done, begun = 0, time.monotonic()
    with TimingStore(given.output, dataset_provenance(templates=False)) as store:
        for finished in (d for piece in pieces for d in sweep.time(piece)):
            store.append(finished)
            done += len(finished)
            if time.monotonic() > start + 60 * given.minutes:
                break
    spent = time.monotonic() - begun
    print(f"{done} problems in {spent:.0f} s: {done / spent:.0f}/s, stalled {timer.stalled}")


def write_resources(outcomes: list[CompileOutcome], path: Path) -> None:
    """Write the resources of each compiled kernel, one per line."""
    names = ("template", "op", "dtype", "transpose_a", "transpose_b", "bias", "even_k", "tf32")
    needs = ("shared_bytes", "registers", "stack_bytes", "seconds")
    lines = [",".join((*names, *CONFIG_FIELDS[:6], "unit_m", "unit_n", "unit_k", *needs))]
    for o in outcomes:
        kind = [getattr(o.spec.source, name) for name in names[:-1]]
        config = [getattr(o.spec.config, name) for name in CONFIG_FIELDS[:6]]
        used = [o.shared_bytes, o.registers, o.stack_bytes, round(o.seconds, 3)]
        row = (*kind, o.spec.tf32, *config, *o.spec.units, *used)
        lines.append(",".join(str(int(v) if isinstance(v, bool) else v) for v in row))
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    runs = {"train": run_train, "vendor": run_vendor, "validation": run_validation}
    runs |= {"recheck": run_again, "missing": run_again}
    parser.add_argument("what", choices=runs)
    parser.add_argument("--output", type=Path, default=Path("timings"), help="directory of shards")
    parser.add_argument("--dataset", type=Path, help="what to time again: recheck, missing")
    parser.add_argument(
        "--refine", action="store_true", help="time the fastest until their noise is small"
    )
    parser.add_argument("--minutes", type=float, default=10, help="from the start of the process")
    parser.add_argument("--problems", type=int, default=0, help="per class, or in total")
    parser.add_argument(
        "--configs", type=int, default=240, help="per template and class; --ranked: per kind"
    )
    parser.add_argument(
        "--ranked", action="store_true", help="train: time the shipped model's first choices"
    )
    parser.add_argument("--processes", type=int, default=max((os.cpu_count() or 2) - 3, 1))
    parser.add_argument(
        "--classes", "--strata", nargs="*", help="only classes whose names match, such as '*tf32*'"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, default=0, choices=range(VALIDATION_ROUNDS))
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--plan", action="store_true", help="only show the plan")
    parser.add_argument("--compile-only", action="store_true", help="fill Triton's cache and stop")
    given = parser.parse_args()
    if runs[given.what] is run_again and given.dataset is None:
        parser.error(f"{given.what} needs --dataset, the data to time again")
    start = time.monotonic() - seconds_alive()
    runs[given.what](given, start)


if __name__ == "__main__":
    main()
