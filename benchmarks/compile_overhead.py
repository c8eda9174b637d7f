"""Overhead of torch-diode in a compile and in an import.

    python benchmarks/compile_overhead.py [--hardware nvidia-h200]

Inductor's real CUDA lowering runs for a fake GPU, so this works wherever triton does. For each kind
of heuristic it prints the time of a decision, from Inductor's arguments to the chosen object: the
first of a process, those of new problems, and those of repeated problems; median and best, against
the budget, with the share of Inductor's own code. Then ratios of whole lowerings and imports.
Writes everything as JSON. Use one core (OMP_NUM_THREADS=1) to compare with the budgets.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from _live import made_with, results_file, save

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic, LookupTable
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import default_heuristic, registration
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend
from torch_diode.integration.deciding.decider import Decider
from torch_diode.integration.deciding.request import ChoiceRequest
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.settings import Settings
from torch_diode.model.registry import SHIPPED
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.table import Table, TableEntry

MATMULS = 50
ROWS, INNER = 128, 768
"""Sizes for which a little over a thousand configs fit."""
ROOT = Path(__file__).parents[1]
BUDGETS_US = {"table": 200.0}
RANKING_BUDGET_US = 1000.0
WHEN = {
    "first": "first with this heuristic",
    "new": "problem not met before",
    "repeated": "problem met before",
    "new, in a lowering": "not met, in a lowering",
    "repeated, in a lowering": "met, in a lowering",
}
SETUP = "import time; start = time.perf_counter()"
IMPORTS = {
    "torch": "import torch",
    "torch_diode, then torch": "import torch_diode, torch",
    "torch_diode alone": "import torch_diode",
}


class VendorFirst(Heuristic):
    """Ranks everything, ATen first: all the work of a decision with plain torch's choices."""

    name = "aten first"

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking:
        """ATen, then the others in their order."""
        times = np.arange(2.0, len(candidates) + 2.0)
        times[candidates.is_template(ATEN)] = 1.0
        return Ranking.by_time(times, self.name)

    def fingerprint(self) -> str:
        """A constant."""
        return self.name


def widths(round_number: int = 0) -> list[int]:
    """N of every matmul in a model, different in each round."""
    return [512 + 16 * (i + MATMULS * round_number) for i in range(MATMULS)]


def inputs_of(round_number: int = 0) -> list[Input]:
    return [Input((ROWS, INNER)), *(Input((INNER, n)) for n in widths(round_number))]


def table_for(hardware: Hardware, rounds: int) -> LookupTable:
    """Table with a row per problem, naming a config in the middle of its space."""
    rows = []
    for n in (n for number in range(rounds) for n in widths(number)):
        problem = MMShape("mm", ROWS, n, INNER)
        space = candidate_space(problem, hardware, (ATEN, "triton::mm"))
        rows.append((hardware.name, problem, (TableEntry(space[len(space) // 2], 5.0),)))
    widest = MMShape("mm", ROWS, 8192, INNER)
    rows.append((hardware.name, widest, rows[0][2]))
    return LookupTable(Table(tuple(rows)))


class Stopwatch:
    """Times every decision while it runs, from Inductor's arguments to the chosen object.

    Rendering the kernel is excluded, since Inductor does that for any choice. CPU time is that of
    the deciding thread.
    """

    def __init__(self) -> None:
        self.samples: list[dict[str, float]] = []
        self._since: dict[str, float] = {}
        self._own = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time decisions inside the context."""
        with ExitStack() as stack:
            for owner, name, wrap in (
                (Decider, "_decide", self._beginning),
                (Decider, "record_decision", self._ending),
                (torch_compat, "can_be_rendered", self._left_out),
                (torch_compat, "template_kwargs_of", self._counted),
                (torch_compat, "fixed_layout", self._counted),
            ):
                real = getattr(owner, name)
                stack.callback(setattr, owner, name, real)
                setattr(owner, name, wrap(real))
            yield

    def _beginning(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def begin(*args: Any) -> Any:
            self._own, self._since = 0.0, _now()
            return real(*args)

        return begin

    def _ending(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def end(*args: Any) -> Any:
            ended = _now()
            taken = {name: ended[name] - begun for name, begun in self._since.items()}
            self.samples.append({**taken, "inductors_own_cpu_us": self._own})
            return real(*args)

        return end

    def _left_out(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def leave_out(*args: Any) -> Any:
            begun = _now()
            try:
                return real(*args)
            finally:
                ended = _now()
                self._since = {n: v + ended[n] - begun[n] for n, v in self._since.items()}

        return leave_out

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any) -> Any:
            begun = time.thread_time()
            try:
                return real(*args)
            finally:
                self._own += (time.thread_time() - begun) * 1e6

        return count


def _now() -> dict[str, float]:
    return {"cpu_us": time.thread_time() * 1e6, "wall_us": time.perf_counter() * 1e6}


@contextmanager
def repeated_requests(rounds: list[Stopwatch], last: int) -> Iterator[None]:
    """Once Inductor has requested choices for `last` matmuls of a graph, repeat all requests
    directly one after the other, once per stopwatch, without rendering kernels."""
    real = DiodeInductorChoices._finalize_template_configs
    requests: list[tuple[Any, ...]] = []

    def hook(handler: Any, choices: Any, inputs: Any, templates: Any, op: str, extra: Any) -> Any:
        requests.append((handler, op, inputs, templates, extra or {}, dict.fromkeys(choices, ())))
        if len(requests) == last:
            unwritten = {
                "can_be_rendered": lambda _: True,
                "disable_prologue_fusion": lambda _: None,
            }
            with mock.patch.multiple(torch_compat, **unwritten):
                for watch in rounds:
                    with watch.running():
                        for given in requests:
                            handler.decider._decide(ChoiceRequest(*given))
        return [choice for own in choices.values() for choice in own]

    DiodeInductorChoices._finalize_template_configs = hook  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        DiodeInductorChoices._finalize_template_configs = real  # type: ignore[method-assign]


def decision_latency(heuristic: Heuristic, rounds: int) -> dict[str, Any]:
    """Decisions about models of many distinct matmuls: one directly after the other, and as they
    come in a lowering, where each kernel is rendered before the next decision."""
    apart = {name: Stopwatch() for name in ("new", "repeated")}
    within = {name: Stopwatch() for name in ("new", "repeated")}
    with registration.using(heuristic):
        first = Stopwatch()
        with first.running():
            lower(torch.mm, [Input((ROWS, INNER)), Input((INNER, 8192))], generate=False)
        for number in range(rounds):
            with repeated_requests(list(apart.values()), MATMULS):
                lower(model, inputs_of(number), generate=False)
        for watch in within.values():
            with watch.running():
                lower(model, inputs_of(rounds), generate=False)
        ranked = registration.explain()[-1].ranked
    return {
        "first": summary(first),
        **{name: summary(watch) for name, watch in apart.items()},
        **{f"{name}, in a lowering": summary(watch) for name, watch in within.items()},
        "candidates": ranked,
        "budget_us": BUDGETS_US.get(heuristic.name, RANKING_BUDGET_US),
    }


def summary(watch: Stopwatch) -> dict[str, float]:
    found: dict[str, float] = {"decisions": len(watch.samples)}
    for name in ("cpu_us", "wall_us", "inductors_own_cpu_us"):
        values = [sample[name] for sample in watch.samples]
        found[f"{name}_median"] = round(statistics.median(values), 1)
        found[f"{name}_least"] = round(min(values), 1)
    return found


def model(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    total = x
    for weight in weights:
        total = total + torch.relu(x @ weight).sum(-1, keepdim=True)
    return total


def lowering_seconds(repeats: int) -> dict[str, float]:
    """Seconds to lower a model of many distinct matmuls: plain, registered, and deciding."""
    inputs = inputs_of()
    times: dict[str, list[float]] = {"plain torch": [], "no heuristic": [], "aten first": []}

    def once(name: str) -> None:
        start = time.perf_counter()
        lower(model, inputs)
        times[name].append(time.perf_counter() - start)

    def without_heuristic() -> None:
        with mock.patch.dict(os.environ, {"TORCH_DIODE_MODEL": "none"}):
            registration.enable()
            once("no heuristic")
        registration.disable()

    def aten_first() -> None:
        with registration.using(VendorFirst()):
            once("aten first")

    ways = [lambda: once("plain torch"), without_heuristic, aten_first]
    lower(model, inputs)
    for number in range(repeats):
        for way in (*ways[number % 3 :], *ways[: number % 3]):
            way()
    return {name: round(min(values), 4) for name, values in times.items()}


def import_seconds(repeats: int) -> dict[str, float]:
    """Median wall time of each import in a fresh process, in turns, so that other load affects all
    alike."""
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


def measure(hardware: Hardware, repeats: int, decisions_only: bool) -> dict[str, Any]:
    rounds = repeats
    heuristics: tuple[Callable[[], Heuristic | None], ...] = (
        VendorFirst,
        AnalyticalHeuristic,
        lambda: table_for(hardware, rounds + 1),
        lambda: default_heuristic.default_heuristic(hardware, Settings(model=SHIPPED)),
    )
    with pretend(hardware):
        latency = {
            made.name: decision_latency(made, rounds)
            for made in (make() for make in heuristics)
            if made is not None
        }
        results: dict[str, Any] = {
            **made_with(hardware.name),
            "decision": latency,
        }
        if decisions_only:
            return {**results, "ratios": {}}
        lowering = lowering_seconds(repeats)
    imports = import_seconds(2 * repeats + 1)
    plain = lowering["plain torch"]
    return {
        **results,
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
        print(f"  {name}: {row['candidates']} candidates ranked, budget {row['budget_us']:.0f} us")
        for when, label in WHEN.items():
            part = row[when]
            print(
                f"    {label:26} {part['cpu_us_median']:9.1f} us median "
                f"({part['cpu_us_median'] / row['budget_us']:5.2f} of the budget), "
                f"{part['cpu_us_least']:9.1f} best; wall {part['wall_us_median']:9.1f}, "
                f"{part['wall_us_least']:9.1f}; "
                f"Inductor's own {part['inductors_own_cpu_us_median']:7.1f}"
            )
    for name, ratio in results["ratios"].items():
        print(f"  {name}: {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="results/compile_overhead.json, if it is all")
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--decisions-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        results = measure(known(options.hardware), options.repeats, options.decisions_only)
    show(results)
    save(options.output or results_file("compile_overhead", options.decisions_only), results)


if __name__ == "__main__":
    main()
