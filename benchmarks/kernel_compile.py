"""Compile time of the chosen kernels by Triton's stages. Needs no GPU.

    python benchmarks/kernel_compile.py [--hardware nvidia-h200] [--problems 160]

The kernels torch-diode chooses for the problems of `results/selection_live.json`, with fixed sizes
as in Inductor, are compiled for that chip one by one from an empty cache, and each of Triton's
stages is timed. For comparison plain torch compiles a matmul on this machine's CPU, which is a
compile without a kernel. Then one kernel is compiled with more and more steps along K: the
assembler unrolls a loop of known length up to a limit, which takes long.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Keep Inductor from starting compile workers; must be set before it is imported.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch
from _live import RESULTS, Row, as_table, geomean, made_with, quantile, results_file, save, shipped
from _selection import plainly

from torch_diode.collection.kernels.compile import use_inductors_ptxas
from torch_diode.hardware import known
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import pretend
from torch_diode.integration.rank import single_choice
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.errors import DiodeError, InvalidValueError, MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from workflows.measuring.static_kernels import compile_static, static_kernels

STEPS = {
    "python": (),
    "passes": ("ttir", "ttgir"),
    "llvm": ("llir", "ptx"),
    "assembler": ("cubin",),
}
"""Triton's names of its stages; the first is the rest of the total."""
LOOP = TritonGEMMConfig(64, 64, 64, 8, 3, 4)
LOOPS = (2, 8, 16, 24, 32, 40, 48, 64)
PLAIN_COMPILES = 7


@contextlib.contextmanager
def stage_times() -> Iterator[list[dict[str, float]]]:
    """Record the seconds of each stage of every kernel compiled inside the context."""
    import triton

    settings = getattr(getattr(triton, "knobs", None), "compilation", None)
    if not hasattr(settings, "listener"):
        raise MissingPartError(
            f"triton: got {triton.__version__}; expected one that tells its stages' times; 3.5 does"
        )
    found: list[dict[str, float]] = []

    def listen(*, times: Any, cache_hit: bool, **_: Any) -> None:
        if not cache_hit:
            found.append({name: microseconds / 1e6 for name, microseconds in times.lowering_stages})

    with triton.knobs.compilation.scope():
        triton.knobs.compilation.listener = listen
        yield found


def compiled(problem: MMShape, candidate: Candidate) -> Row:
    """Seconds of each stage of one kernel; inside `pretend`."""
    kernels = static_kernels(problem, [candidate])
    if not kernels:
        raise InvalidValueError(f"{problem}: {candidate} cannot be rendered")
    with stage_times() as stages:
        start = time.perf_counter()
        fault = compile_static(kernels[0])
        whole = time.perf_counter() - start
    if fault or len(stages) != 1:
        raise InvalidValueError(
            f"{problem} {candidate}: got {fault or f'{len(stages)} kernels'}; expected one compiled"
        )
    steps = {
        name: sum(stages[0].get(stage, 0.0) for stage in parts) for name, parts in STEPS.items()
    }
    steps["python"] = whole - sum(steps.values())
    return {
        "problem": problem.key,
        "candidate": str(candidate),
        "seconds": {name: round(seconds, 4) for name, seconds in steps.items()},
        "whole": round(whole, 4),
    }


def chosen(problem: MMShape, heuristic: Heuristic, hardware: Hardware) -> Candidate:
    """The choice of a plain compile."""
    return single_choice(*plainly(problem, heuristic, hardware))


def plain_seconds() -> float:
    """Seconds of plain torch's compile of a matmul without a kernel, from empty caches."""
    from torch._inductor.utils import fresh_cache

    registration.disable()
    taken = []
    for number in range(PLAIN_COMPILES + 1):
        torch.compiler.reset()
        compiling = torch.compile(torch.mm, dynamic=False)
        left, right = torch.randn(64 + number, 48), torch.randn(48, 32)
        with fresh_cache():
            start = time.perf_counter()
            compiling(left, right)
            taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])  # the first pays for imports


def loops(hardware: Hardware) -> list[Row]:
    """One config with different numbers of steps along K."""
    candidate = Candidate("triton::mm", LOOP)
    problems = {
        steps: MMShape("mm", 1024, 1024, steps * LOOP.block_k, transpose_b=True) for steps in LOOPS
    }
    with pretend(hardware):
        return [{"steps": n, **compiled(problem, candidate)} for n, problem in problems.items()]


def summary(rows: Sequence[Row], plain: float, decided: int) -> Row:
    """Compile time added by a kernel on this machine."""
    whole = [row["whole"] for row in rows]
    over = [(plain + seconds) / plain for seconds in whole]
    total = sum(whole)
    return {
        "problems": decided,
        "kernels": len(rows),
        "plain_s": round(plain, 4),
        "kernel_s": {
            "least": min(whole),
            "median": statistics.median(whole),
            "mean": statistics.fmean(whole),
            "p95": quantile(whole, 0.95),
        },
        "share": {name: sum(row["seconds"][name] for row in rows) / total for name in STEPS},
        "with a kernel over plain": {"geomean": geomean(over), "least": min(over)},
    }


def measure(hardware: Hardware, count: int | None) -> dict[str, Any]:
    use_inductors_ptxas()
    heuristic = shipped(hardware)
    live = json.loads((RESULTS / "selection_live.json").read_text())["rows"][:count]
    problems = [MMShape.from_key(row["problem"]) for row in live]
    picks = {problem: chosen(problem, heuristic, hardware) for problem in problems}
    plain = plain_seconds()
    with pretend(hardware):
        # The first compile includes Triton's imports.
        compiled(MMShape("mm", 72, 72, 72), Candidate("triton::mm", LOOP))
        rows = [
            compiled(problem, pick) for problem, pick in picks.items() if pick.config is not None
        ]
    return {
        **made_with(hardware.name),
        "summary": summary(rows, plain, len(problems)),
        "loops": loops(hardware),
        "rows": rows,
    }


def show(results: dict[str, Any]) -> None:
    found = results["summary"]
    over = found["with a kernel over plain"]
    print(
        f"{found['kernels']} of {found['problems']} problems get a kernel. Plain torch compiles a "
        f"matmul in {found['plain_s']:.3f} s; with a kernel that takes {over['geomean']:.2f} times "
        f"as long (geometric mean), {over['least']:.2f} with the quickest.\n"
    )
    print(as_table([["kernel, s", *found["kernel_s"]], ["", *found["kernel_s"].values()]]), "\n")
    print(as_table([["share of", *found["share"]], ["", *found["share"].values()]]), "\n")
    head = [f"steps of {LOOP}", "assembler, s", "whole, s"]
    lines = [[r["steps"], r["seconds"]["assembler"], r["whole"]] for r in results["loops"]]
    print(as_table([head, *lines]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, help="default: results/kernel_compile.json for a complete run"
    )
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--problems", type=int, help="only the first N; default: all")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/inductor"
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/triton"
        try:
            results = measure(known(given.hardware), given.problems)
        except DiodeError as fault:
            print(f"error: {fault}", file=sys.stderr)
            return 2
    show(results)
    save(given.output or results_file("kernel_compile", given.problems is not None), results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
