"""The demo's CPU part: compile a transformer for this machine's CPU, with and without torch-diode.

Where no model knows the CPU, the transformer's own matmuls are measured first, in seconds, and the
times are used as a lookup table: what `torch-diode tune` does for any program.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from t5_encoder import TOKENS, VOCABULARY, Encoder

import torch_diode as td
from torch_diode.candidates.space import candidate_space
from torch_diode.cli.console.output import print_table
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.collection.timers.cpu_load import UnwatchedCpu
from torch_diode.hardware import detect
from torch_diode.integration.capture.trace import tracing
from torch_diode.integration.deciding.record import Decision
from torch_diode.integration.default_heuristic import default_heuristic
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.registration import paused
from torch_diode.integration.settings import from_environment
from torch_diode.toolkit.progress import Progress
from torch_diode.types.candidate import ATEN, ONEDNN
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.table import Table

SECONDS, LEAST_ROUNDS = 6.0, 5
LOW = 0.2
"""Quantile of the calls that counts as the time: disturbances only add."""
BAND = 0.02
"""Relative error of the best time at which measuring a problem ends."""
LARGEST_ERROR = 1e-4
"""Tolerance relative to eager's result: float32 through six layers."""
EAGER, PLAIN, DIODE = "eager", "torch.compile", "torch.compile with torch-diode"


@dataclass(frozen=True)
class Compiled:
    """A way to run the transformer: its call, seconds of the first one, and its result."""

    call: Callable[[], torch.Tensor]
    compile_s: float | None
    result: torch.Tensor


def show() -> None:
    """Compile, decide, run and compare."""
    hardware = detect("cpu")
    print(
        f"torch-diode on this machine: {hardware.label}, torch {torch.__version__}\n"
        f"The program: a transformer (T5-small's encoder, {TOKENS} tokens, float32, random "
        "weights), compiled\n"
    )
    ways, decisions, source = compile_all(hardware)
    median_us = statistics.median(d.microseconds for d in decisions) if decisions else 0.0
    print(
        f"1. What was chosen. {len(decisions)} of its matmuls can run in more than one library. "
        "torch.compile takes ATen\n   for all of them; torch-diode takes the one it expects to be "
        f"faster,\n   by {source}, in {median_us:.0f} µs a decision:\n"
    )
    show_decisions(decisions)
    print("\n2. How fast that is. Each way called in turn for a few seconds:\n")
    times = in_turn({name: way.call for name, way in ways.items()})
    rows = [
        (name, way.compile_s, times[name], f"{times[PLAIN] / times[name]:.2f}x")
        for name, way in ways.items()
    ]
    print_table(("", "compile s", "ms a run", "speed"), rows, right="lrrr")
    errors = {name: error(way.result, ways[EAGER].result) for name, way in ways.items()}
    if not errors[DIODE] < LARGEST_ERROR:
        sys.exit(f"demo: torch-diode's result differs from eager's by {errors[DIODE]:.1%}")
    print(
        f"\n3. The results agree. Difference to eager's, over their size: {errors[DIODE]:.0e} with "
        f"torch-diode,\n   {errors[PLAIN]:.0e} without."
    )


def compile_all(
    hardware: Hardware,
) -> tuple[dict[str, Compiled], list[Decision], str]:
    """Eager, plain and with torch-diode; its decisions, and what they are based on."""
    from torch._inductor.utils import fresh_cache

    torch.manual_seed(0)
    encoder = Encoder().eval()
    tokens = torch.randint(VOCABULARY, (1, TOKENS))

    def run(compiled: Any) -> Compiled:
        def call() -> torch.Tensor:
            with torch.no_grad():
                return torch.as_tensor(compiled(tokens))

        start = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - start
        return Compiled(call, None if compiled is encoder else seconds, result)

    # One layer has all problems there are; and a process's first compile includes imports.
    with fresh_cache(), tracing() as trace:
        run(torch.compile(Encoder(layers=1).eval()))
    heuristic, source = heuristic_for(list(trace.counts), hardware)
    ways = {EAGER: run(encoder)}
    with fresh_cache(), paused():
        ways[PLAIN] = run(torch.compile(encoder))
    before = len(td.explain())
    with fresh_cache(), td.using(heuristic):
        # The default; but different options make Dynamo keep both variants of one model.
        ways[DIODE] = run(torch.compile(encoder, options={"debug": False}))
    return ways, td.explain()[before:], source


def heuristic_for(problems: Sequence[td.MMShape], hardware: Hardware) -> tuple[td.Heuristic, str]:
    """The default heuristic if it knows this CPU, else a table measured now; and what it is."""
    found = default_heuristic(hardware, from_environment())
    if found and any(found.rank(p, candidate_space(p, hardware), hardware) for p in problems):
        return found, found.name
    print(
        "0. No model knows this CPU with so many threads yet, so its matmuls are measured first, as"
        "\n   `torch-diode tune` would:"
    )
    table = measure(problems, hardware)
    print()
    return table, "what was just measured"


def measure(problems: Sequence[td.MMShape], hardware: Hardware) -> td.LookupTable:
    """Time ATen and oneDNN on these problems."""
    timer = CpuTimer(cache_bytes=hardware.l3_bytes, watch=UnwatchedCpu())
    releases = torch_compat.installed_versions()
    sweep = Sweep(hardware.name, CpuKernels(), timer, releases, threads=hardware.threads)
    found = []
    with ConsoleProgress() as bar:
        for done, problem in enumerate(problems, 1):
            candidates = candidate_space(problem, hardware, (ATEN, ONEDNN))
            found.append(sweep.time(problem, candidates))
            bar(Progress("Timing", done, len(problems), "problems"))
    return td.LookupTable(Table.from_dataset(Dataset.merge(found), k=2))


def show_decisions(decisions: Sequence[Decision]) -> None:
    """Print a line per problem: the kernel chosen, and the times it was chosen by."""
    counts = Counter(decision.problem for decision in decisions)
    rows = [
        (
            counts[decision.problem],
            decision.problem,
            str(decision.winner.candidate),
            decision.winner.predicted_us,
            decision.plain.predicted_us if decision.plain else None,
        )
        for decision in {d.problem: d for d in decisions}.values()
    ]
    print_table(("×", "problem", "chosen", "expected µs", "of ATen"), rows, right="rllrr")


def in_turn(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Milliseconds of each call: a low quantile over rounds of one call each."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(taken[EAGER]) < LEAST_ROUNDS:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name].append((time.perf_counter() - start) * 1e3)
    return {name: sorted(times)[int(LOW * len(times))] for name, times in taken.items()}


def error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Difference of two results, relative to their size."""
    return float((result - expected).norm() / expected.norm())
