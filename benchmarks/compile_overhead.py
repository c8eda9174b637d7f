"""What torch-diode adds to a compile and to an import.

    python benchmarks/compile_overhead.py [--output results.json] [--hardware nvidia-h200]

Inductor's real CUDA lowering is driven for a pretended GPU, so this runs anywhere triton does.
Prints medians against their budgets, and ratios; writes all of it as JSON where asked to.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic, LookupTable
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import registration, releases
from torch_diode.integration.lowering import Input, lower, pretend
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidates import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.table import Table, TableEntry

MATMULS = 50
ROOT = Path(__file__).parents[1]
BUDGETS_US = {"table": 200.0, "analytical": 1000.0, "aten first": 1000.0}
SETUP = "import time; start = time.perf_counter()"
IMPORTS = {
    "torch": "import torch",
    "torch_diode, then torch": "import torch_diode, torch",
    "torch_diode alone": "import torch_diode",
}


class VendorFirst(Heuristic):
    """Ranks everything, ATen first: all the work of a decision, and plain torch's choices."""

    name = "aten first"

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking:
        """ATen, then the others in their order."""
        times = np.arange(2.0, len(candidates) + 2.0)
        times[candidates.is_template(ATEN)] = 1.0
        return Ranking.by_time(times, self.name)

    def fingerprint(self) -> str:
        """There is but one."""
        return self.name


def problems() -> list[MMShape]:
    return [MMShape("mm", 512 + 16 * i, 1024, 768) for i in range(MATMULS)]


def table_for(hardware: Hardware) -> LookupTable:
    """A row for every problem, naming a config in the middle of its space."""
    rows = []
    for problem in problems():
        space = candidate_space(problem, hardware, (ATEN, "triton::mm"))
        rows.append((hardware.name, problem, (TableEntry(space[len(space) // 2], 5.0),)))
    return LookupTable(Table(tuple(rows)))


@contextmanager
def inductors_part() -> Iterator[list[float]]:
    """Microseconds spent in Inductor's own code for making a choice object, call by call."""
    real, spent = releases.base_of, []

    def timed(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return real(*args)
        finally:
            spent.append((time.perf_counter() - start) * 1e6)

    releases.base_of = timed
    try:
        yield spent
    finally:
        releases.base_of = real


def decision_latency(heuristic: Heuristic) -> dict[str, float]:
    """From Inductor's arguments to the chosen object, one matmul at a time."""
    before = len(registration.explain())
    with registration.using(heuristic), inductors_part() as spent:
        for problem in problems():
            inputs = [Input((problem.M, problem.K)), Input((problem.K, problem.N))]
            lower(torch.mm, inputs, generate=False)
    # The first few pay for caches that a process fills once.
    decisions = registration.explain()[before:][5:]
    took = [decision.microseconds for decision in decisions]
    own = statistics.median(spent[5:]) if spent else 0.0
    return {
        "median_us": round(statistics.median(took), 1),
        "least_us": round(min(took), 1),
        "of_which_inductors_own_us": round(own, 1),
        "candidates": decisions[0].ranked,
        "budget_us": BUDGETS_US[heuristic.name],
    }


def model(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    total = x
    for weight in weights:
        total = total + torch.relu(x @ weight).sum(-1, keepdim=True)
    return total


def lowering_seconds(repeats: int) -> dict[str, float]:
    """A model of many distinct matmuls, lowered to code: plain, registered, and deciding."""
    inputs = [Input((512, 768)), *(Input((768, 256 + 16 * i)) for i in range(MATMULS))]
    times: dict[str, list[float]] = {"plain torch": [], "no heuristic": [], "aten first": []}

    def once(name: str) -> None:
        start = time.perf_counter()
        lower(model, inputs)
        times[name].append(time.perf_counter() - start)

    lower(model, inputs)
    for _ in range(repeats):
        once("plain torch")
        registration.enable()
        once("no heuristic")
        registration.disable()
        with registration.using(VendorFirst()):
            once("aten first")
    return {name: round(min(values), 4) for name, values in times.items()}


def import_seconds(repeats: int) -> dict[str, float]:
    """Wall time of each import in a process of its own, in turns, so that what else the machine
    does falls on all alike; medians."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    times: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(repeats):
        for name, statement in IMPORTS.items():
            done = subprocess.run(
                [sys.executable, "-c", f"{SETUP}; {statement}; print(time.perf_counter() - start)"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            times[name].append(float(done.stdout))
    return {name: round(statistics.median(values), 4) for name, values in times.items()}


def measure(hardware: Hardware, repeats: int) -> dict[str, Any]:
    heuristics: tuple[Callable[[], Heuristic], ...] = (
        VendorFirst,
        AnalyticalHeuristic,
        lambda: table_for(hardware),
    )
    with pretend(hardware):
        latency = {made.name: decision_latency(made) for made in (make() for make in heuristics)}
        lowering = lowering_seconds(repeats)
    imports = import_seconds(2 * repeats + 1)
    plain = lowering["plain torch"]
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "hardware": hardware.name,
        "decision": latency,
        "lowering_s": {"matmuls": MATMULS, **lowering},
        "import_s": imports,
        "ratios": {
            "lowering, registered without a heuristic": round(lowering["no heuristic"] / plain, 3),
            "lowering, deciding with the same choices": round(lowering["aten first"] / plain, 3),
            "import added, seconds": round(
                imports["torch_diode, then torch"] - imports["torch"], 4
            ),
        },
    }


def show(results: dict[str, Any]) -> None:
    print(f"torch {results['torch']}, pretended {results['hardware']}")
    for name, row in results["decision"].items():
        print(
            f"  decision, {name:12} {row['median_us']:8.1f} us median "
            f"({row['median_us'] / row['budget_us']:.2f} of its budget; "
            f"{row['of_which_inductors_own_us']:.1f} us of it Inductor's own; "
            f"{row['candidates']} ranked)"
        )
    for name, ratio in results["ratios"].items():
        print(f"  {name}: {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        results = measure(known(options.hardware), options.repeats)
    show(results)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
