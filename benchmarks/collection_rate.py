"""Timings per second of the sweep and of Inductor's exhaustive autotune. Needs a GPU.

    python benchmarks/collection_rate.py [--minutes 1] [--autotune-seconds 120]

The sweep times every candidate of drawn problems until it is done or the time is up, compilation
included. It times a random part of the candidates on all problems, then the next part, so that an
interrupted run has the same mix as a complete one. The first few of the same problems go through
torch.compile with max-autotune and the EXHAUSTIVE search space, in a separate process that is ended
when its time is up; what it had compiled and timed by then is counted. Both start with empty
caches.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _live import RESULTS, made_with, save

from torch_diode.collection.cluster.node import compiling_processes
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import CandidateRule, Group, exhaustive, plan
from torch_diode.collection.shape_sampling import LogUniform, ShapeSource
from torch_diode.collection.store.output import WatchedStore
from torch_diode.collection.sweep_run import SweepRun
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.files.atomic import write_text
from torch_diode.hardware import known
from torch_diode.hardware.versions import versions
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from workflows.measuring.private_caches import private_caches

ROOT = Path(__file__).parents[1]
MOST_FLOPS = 5e10
PART = 40
"""Candidates per group: compiled in a few seconds, and enough to keep the GPU busy as long."""


def problems(count: int, seed: int) -> list[MMShape]:
    """Problems of one kind, such as a layer of a network has, so that kernels are shared."""
    source = ShapeSource(LogUniform(64, 8192), ("mm",), layouts=("nt",), multiple=64)
    drawn = source.draw(4 * count, seed)
    return [problem for problem in drawn if problem.flops <= MOST_FLOPS][:count]


def in_parts(
    wanted: Sequence[MMShape], rule: CandidateRule, library: KernelLibrary, part: int, seed: int
) -> list[Group]:
    """Groups of the same problems, each with a random part of their candidates; together they have
    every candidate of every problem once."""
    spaces = {problem: rule(problem) for problem in wanted}
    everything = list(dict.fromkeys(c for space in spaces.values() for c in space))
    random.Random(seed).shuffle(everything)
    part_of = {candidate: i // part for i, candidate in enumerate(everything)}
    parts = {p: np.array([part_of[c] for c in space]) for p, space in spaces.items()}
    groups = []
    for number in range(max(part_of.values()) + 1):
        own = {p: spaces[p].take(parts[p] == number) for p in wanted if number in parts[p]}
        groups += plan(list(own), own.__getitem__, library, chunk=len(own))
    return groups


def sweep(
    wanted: list[MMShape], hardware: Hardware, seconds: float, processes: int, seed: int
) -> dict[str, Any]:
    """Timings, and the seconds from before the first compile to the last timing."""
    from torch_diode.integration.capture.template_source import template_source

    library = KernelLibrary(template_source, hardware.units)
    groups = in_parts(wanted, exhaustive(hardware), library, PART, seed)
    kernels = len({spec for group in groups for spec in group.specs})
    sweep_run = SweepRun(groups, TimingSettings(library, hardware, versions()))
    finished: list[Dataset] = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, WatchedStore(Path(folder)) as store:
        store.on_append = finished.append
        outcomes = sweep_run.run(store, processes, start + seconds, lambda _: None)
        took = time.monotonic() - start
    counts = counted_times(finished)
    return {
        **counts,
        "kernels": kernels,
        "compiled": len(outcomes),
        "seconds": round(took, 1),
        "timings_per_s": round(counts["timings"] / took, 1),
    }


def counted_times(finished: Sequence[Dataset]) -> dict[str, int]:
    """Counts over the parts: only rows with a time are timings; a problem occurs in many parts."""
    timings = sum(int(np.isfinite(part.values("time_us")).sum()) for part in finished)
    rows = sum(len(part) for part in finished)
    problems = {part.problem(row) for part in finished for row in part.problems.first.tolist()}
    return {"problems": len(problems), "timings": timings, "without_a_time": rows - timings}


def autotune(problem: MMShape, seconds: float) -> dict[str, Any]:
    """Progress of Inductor's search on one problem in a fresh process within the time limit."""
    with tempfile.TemporaryDirectory() as folder, private_caches():
        progress = Path(folder) / "progress.json"
        command = [sys.executable, __file__, "--child", problem.key, str(progress)]
        start = time.monotonic()
        run_for(seconds, command, {**os.environ, "TORCH_DIODE": "0"})
        took = time.monotonic() - start
        found = json.loads(progress.read_text()) if progress.exists() else {}
    return counted(problem, found, took)


def run_for(seconds: float, command: list[str], environment: dict[str, str]) -> None:
    """Run a command with a time limit, then end it with all its child processes: Inductor's compile
    workers would otherwise run on for a minute on the cores the sweep needs."""
    with subprocess.Popen(command, env=environment, start_new_session=True) as child:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)


def counted(problem: MMShape, found: dict[str, Any], took: float) -> dict[str, Any]:
    """Rates from the first call of the compiled function on, without imports.

    Inductor compiles everything first; until it is done, the kernels compiled so far are an upper
    bound of those timed.
    """
    searched = found.get("seconds", 0.0)
    finished = bool(found.get("finished"))
    count = found.get("benchmarked", 0) if finished else found.get("compiled", 0)
    return {
        "problem": problem.key,
        "choices": found.get("choices", 0),
        "compiled": found.get("compiled", 0),
        "benchmarked": found.get("benchmarked", 0),
        "finished": finished,
        "seconds": round(searched, 1),
        "process_seconds": round(took, 1),
        "timings_per_s": round(count / searched, 2) if searched else 0.0,
    }


def ratio_of(swept: dict[str, Any], searches: Sequence[dict[str, Any]]) -> float | None:
    """The sweep's rate over Inductor's; None if Inductor has none."""
    count = sum(one["timings_per_s"] * one["seconds"] for one in searches)
    seconds = sum(one["seconds"] for one in searches)
    return swept["timings_per_s"] / (count / seconds) if count else None


def ratio_in_words(ratio: float | None, finished: bool) -> str:
    """Last line of the output; an interrupted search had its compiled kernels counted as timed."""
    if ratio is None:
        return "ratio: unknown, Inductor compiled nothing"
    return f"ratio: {'' if finished else 'at least '}{ratio:.3g}"


@contextlib.contextmanager
def count_benchmarks() -> Iterator[dict[str, int]]:
    """Running numbers of Inductor's `choices`, and of those `benchmarked`."""
    import torch._inductor.select_algorithm as select

    from torch_diode.integration.hooks import torch_compat

    counts = {"choices": 0, "benchmarked": 0}
    selector: Any = select.AlgorithmSelectorCache
    own = vars(selector)["benchmark_choice"]

    def listed(choices: list[Any]) -> list[Any]:
        counts["choices"] += len(choices)
        return choices

    def benchmark_choice(cls: Any, *arguments: Any, **more: Any) -> float:
        try:
            return float(own.__get__(None, cls)(*arguments, **more))
        finally:
            counts["benchmarked"] += 1

    undo = torch_compat.add_preprocessing(listed)
    selector.benchmark_choice = classmethod(benchmark_choice)
    try:
        yield counts
    finally:
        selector.benchmark_choice = own
        undo()


def search(problem: MMShape, progress: Path) -> None:
    """Child process: max-autotune one problem, recording its progress."""
    from torch._dynamo.utils import counters

    from torch_diode.integration.autotune.feedback import autotune

    start, done = time.monotonic(), threading.Event()
    with count_benchmarks() as counts:

        def write(finished: bool = False) -> None:
            compiled = counters["inductor"]["select_algorithm_num_precompiles"]
            state = {
                "choices": counts["choices"],
                "compiled": compiled or counts["benchmarked"],
                "benchmarked": counts["benchmarked"],
                "finished": finished,
                "seconds": time.monotonic() - start,
            }
            write_text(progress, json.dumps(state))

        def keep_writing() -> None:
            while not done.wait(1.0):
                write()

        writer = threading.Thread(target=keep_writing, daemon=True)
        writer.start()
        autotune(problem, "cuda", "EXHAUSTIVE")
        done.set()
        writer.join()
        write(finished=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="of the sweep")
    parser.add_argument("--problems", type=int, default=400, help="of the sweep, at most")
    parser.add_argument("--autotune-seconds", type=float, default=120.0, help="for each problem")
    parser.add_argument("--autotune-problems", type=int, default=1)
    parser.add_argument("--processes", type=int, default=compiling_processes())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--output", type=Path, default=RESULTS / "collection_rate.json")
    parser.add_argument("--child", nargs=2, metavar=("PROBLEM", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        search(MMShape.from_key(given.child[0]), Path(given.child[1]))
        return
    if not torch.backends.cuda.is_built():
        print("skipped: needs a GPU, and this torch is built without CUDA")
        return
    hardware = known(given.hardware)
    wanted = problems(given.problems, given.seed)
    # Before the sweep, which needs the cores of Inductor's processes.
    searches = [autotune(p, given.autotune_seconds) for p in wanted[: given.autotune_problems]]
    with private_caches():
        swept = sweep(wanted, hardware, 60 * given.minutes, given.processes, given.seed)
    print(
        f"sweep of {swept['problems']:,} problems: {swept['compiled']:,} of {swept['kernels']:,} "
        f"kernels compiled, {swept['timings']:,} timings in {swept['seconds']} s: "
        f"{swept['timings_per_s']}/s"
    )
    for one in searches:
        how = "" if one["finished"] else ", not finished: at most"
        print(
            f"autotune {one['problem']}: {one['choices']:,} choices, {one['compiled']:,} compiled, "
            f"{one['benchmarked']:,} timed in {one['seconds']} s{how} {one['timings_per_s']}/s"
        )
    ratio = ratio_of(swept, searches)
    finished = all(one["finished"] for one in searches)
    print(ratio_in_words(ratio, finished))
    data = {
        **made_with(hardware.name, given.seed),
        "processes": given.processes,
        "sweep": swept,
        "autotune": searches,
        "ratio": ratio,
        "ratio_is_a_lower_bound": not finished,
    }
    save(given.output, data)


if __name__ == "__main__":
    main()
