"""Latency of the steps of a decision on one CPU core: candidate space, ranking, table lookup.

    python benchmarks/ranking_latency.py [--hardware nvidia-h200]

Prints and writes microseconds of CPU time, median and best, against the budget of each step.
`compile_overhead.py` measures whole decisions, from Inductor's arguments to the chosen object.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _live import RESULTS, made_with, save

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic, LookupTable
from torch_diode.integration import default_heuristic
from torch_diode.integration.settings import Settings
from torch_diode.model.registry import SHIPPED
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table, TableEntry

CANDIDATES = 1000
ROWS = 2000
PROBLEM = MMShape("mm", 4096, 4096, 4096, transpose_b=True)
SPLIT_PROBLEM = MMShape("mm", 16, 16, 65536)


def timed_us(call: Callable[[], object], repeats: int = 300) -> dict[str, float]:
    """First call, then median, minimum and 95th percentile of the others, in CPU time of this
    thread, since wall time depends on other load."""
    times = []
    for _ in range(repeats + 1):
        start = time.thread_time()
        call()
        times.append((time.thread_time() - start) * 1e6)
    first = times.pop(0)
    return {
        "first_us": round(first, 1),
        "median_us": round(statistics.median(times), 1),
        "least_us": round(min(times), 1),
        "p95_us": round(float(np.percentile(times, 95)), 1),
    }


def steps(hardware: Hardware) -> dict[str, tuple[float, Callable[[], object]]]:
    """Name, budget in microseconds, and call of each step."""
    space = candidate_space(PROBLEM, hardware)
    thousand = space.take(np.linspace(0, len(space) - 1, CANDIDATES).astype(np.int64))
    analytical, table = AnalyticalHeuristic(), lookup_table(hardware)
    fresh = iter(MMShape("mm", 4096, 4096, 4096 + 8 * i) for i in range(1, 1_000_000))
    model = default_heuristic.default_heuristic(hardware, Settings(model=SHIPPED))
    found: dict[str, tuple[float, Callable[[], object]]] = {}
    if model is not None:
        found[f"shipped model, {CANDIDATES} candidates"] = (
            1000,
            lambda: model.rank(PROBLEM, thousand, hardware),
        )
        found[f"shipped model, {CANDIDATES} candidates, new problem"] = (
            1000,
            lambda: model.rank(next(fresh), thousand, hardware),
        )
    return found | {
        "space, problem seen before": (200, lambda: candidate_space(PROBLEM, hardware)),
        "space, new problem": (200, lambda: candidate_space(next(fresh), hardware)),
        "space, with splits of K": (200, lambda: candidate_space(SPLIT_PROBLEM, hardware)),
        f"analytical, {CANDIDATES} candidates": (
            1000,
            lambda: analytical.rank(PROBLEM, thousand, hardware),
        ),
        f"space and analytical, {len(space)} candidates": (
            len(space) * 1.0,
            lambda: analytical.rank(PROBLEM, candidate_space(PROBLEM, hardware), hardware),
        ),
        f"table hit, {ROWS} rows": (200, lambda: table.rank(PROBLEM, space, hardware)),
        f"table miss, {ROWS} rows": (200, lambda: table.rank(SPLIT_PROBLEM, space, hardware)),
    }


def lookup_table(hardware: Hardware) -> LookupTable:
    """A table of many problems, five candidates each."""
    space = candidate_space(PROBLEM, hardware)
    chosen = [TableEntry(space[i], 1.0 + i) for i in range(0, len(space), len(space) // 5)][:5]
    others = (MMShape("mm", 128 + i, 128, 128) for i in range(ROWS - 1))
    return LookupTable(Table(tuple((hardware.name, p, tuple(chosen)) for p in (PROBLEM, *others))))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the steps of a decision.")
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--output", type=Path, default=RESULTS / "ranking_latency.json")
    options = parser.parse_args()
    results = []
    for name, (budget, call) in steps(known(options.hardware)).items():
        result = timed_us(call)
        results.append({"step": name, "budget_us": budget, **result})
        ratio = result["median_us"] / budget
        print(
            f"{name:45s} {result['median_us']:8.0f} us of {budget:6.0f}   {ratio:5.2f}x budget"
            f"   best {result['least_us']:8.0f}   first {result['first_us']:8.0f}"
        )
    save(options.output, {**made_with(options.hardware), "rows": results})


if __name__ == "__main__":
    main()
