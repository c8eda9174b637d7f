"""Whether a template should fuse the work before a matmul. Needs a GPU.

    python benchmarks/prologues.py --minutes 2
    python benchmarks/prologues.py --dry --problems 4      # no GPU: real lowerings, made-up times

Where a template is the only choice, Inductor fuses the pointwise work on an operand into its loads,
once per block that loads it, without checking that this is faster. Torch-diode prevents it, and
this benchmark shows why. A matmul with work before it is compiled three ways: ATen, and the model's
best Triton config with the work fused, as Inductor would, and in a separate kernel. All are
replayed as CUDA graphs and timed in turn with a cold L2.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

# torch-diode is enabled explicitly below.
os.environ["TORCH_DIODE"] = "0"

import torch
from _captured import captured_with
from _live import Row, as_table, attempted, geomean, made_with, results_file, save, shipped
from torch import Tensor
from torch.nn import functional

from torch_diode.candidates.space import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from workflows.measuring.private_caches import private_caches
from workflows.measuring.worker_state import seconds_alive

SIZES = (
    (512, 768, 768),
    (2048, 3072, 768),
    (128, 1024, 1024),
    (4096, 256, 1024),
    (64, 2048, 512),
)
"""M, N, K."""
HEADS = 64
FULL, HALF = torch.float32, torch.bfloat16


def by_heads(x: Tensor) -> Tensor:
    """Copy from head-major to token-major order, as after an attention."""
    sequences, heads, tokens, width = x.shape
    return x.permute(0, 2, 1, 3).reshape(sequences * tokens, heads * width)


WORK: dict[str, tuple[torch.dtype, Callable[..., Tensor]]] = {
    "relu": (FULL, lambda w, x: torch.relu(x) @ w.t()),
    "gelu": (FULL, lambda w, x: functional.gelu(x) @ w.t()),
    "scale": (FULL, lambda w, x, v: (x * v) @ w.t()),
    "copy": (HALF, lambda w, x: by_heads(x) @ w.t()),
    "gather": (HALF, lambda w, x, rows: x[rows] @ w.t()),
}
"""What comes before, all of it such that Inductor takes it along: in half precision that is what
only moves numbers."""


@dataclass(frozen=True)
class Case:
    """One matmul and the work before it."""

    size: tuple[int, int, int]
    work: str

    @property
    def problem(self) -> MMShape:
        """The matmul; float32 uses TF32."""
        dtype = WORK[self.work][0]
        name = str(dtype).removeprefix("torch.")
        return MMShape("mm", *self.size, dtype=name, transpose_b=True, tf32=dtype == FULL)

    def shapes(self) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """Shapes of the inputs: the weight, the operand, and the inputs of the work."""
        (m, n, k), dtype = self.size, WORK[self.work][0]
        operand = {"copy": (m // HEADS, k // HEADS, HEADS, HEADS), "gather": (30_000, k)}
        found = [((n, k), dtype), (operand.get(self.work, (m, k)), dtype)]
        extra = {"scale": ((k,), dtype), "gather": ((m,), torch.int64)}
        return [*found, extra[self.work]] if self.work in extra else found


def cases(count: int) -> list[Case]:
    """All kinds of work in turn."""
    return [Case(size, work) for size in SIZES for work in WORK][:count]


def best_triton(problem: MMShape, hardware: Hardware, heuristic: Heuristic) -> Candidate:
    """The model's first candidate of the template a plain compile may use."""
    space = candidate_space(problem, hardware)
    space = space.take(space.is_template("triton::mm"))
    ranking = heuristic.rank(problem, space, hardware)
    if ranking is None:
        raise DiodeError(f"{problem.key}: the model abstains")
    return space[int(ranking.order[0])]


def prologue_fusion() -> contextlib.AbstractContextManager[Any]:
    """Let Inductor fuse the prologue, which torch-diode prevents."""
    from torch_diode.integration.hooks import torch_compat

    return mock.patch.object(torch_compat, "disable_prologue_fusion", return_value=None)


class Bench:
    """Compiles, captures and times."""

    def __init__(self, hardware: Hardware, heuristic: Heuristic, seed: int) -> None:
        from torch_diode.collection.timers.cuda import CudaTimer

        self.hardware, self.heuristic = hardware, heuristic
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.timer = CudaTimer(self.device, hardware.l2_bytes, seed)

    def row(self, case: Case) -> Row:
        """Times of one case."""
        inputs = [
            torch.randint(30_000, shape, device=self.device)
            if dtype == torch.int64
            else torch.randn(shape, device=self.device, dtype=dtype)
            for shape, dtype in case.shapes()
        ]
        fn, best = WORK[case.work][1], best_triton(case.problem, self.hardware, self.heuristic)
        made = {"aten_us": captured_with(fn, inputs, Candidate(ATEN))}
        with prologue_fusion():
            made["taken_us"] = captured_with(fn, inputs, best)
        made["apart_us"] = captured_with(fn, inputs, best)
        found = self.timer.measure([replay for replay, _ in made.values()], ((float("inf"), 30),))
        results = [result.float() for _, result in made.values()]
        worst = max(float((r - results[0]).norm() / results[0].norm()) for r in results[1:])
        times = {name: one.time_us for name, one in zip(made, found, strict=True)}
        return {**head(case, best), **times, "difference": worst}


def dry_row(case: Case, hardware: Hardware, heuristic: Heuristic) -> Row:
    """Kernel counts of both lowerings for the chip, with made-up times."""
    from torch_diode.integration import registration
    from torch_diode.integration.capture.fake_gpu import Input, lower
    from workflows.measuring.static_kernels import Exactly

    best = best_triton(case.problem, hardware, heuristic)
    inputs = [Input(shape, dtype) for shape, dtype in case.shapes()]
    kernels = {}
    with registration.using(Exactly([best]), epilogues=False):
        with prologue_fusion():
            kernels["taken"] = len(lower(WORK[case.work][1], inputs).kernels)
        kernels["apart"] = len(lower(WORK[case.work][1], inputs).kernels)
    times = {"aten_us": 10.0, "taken_us": 9.0, "apart_us": 8.0, "difference": 0.0}
    return {**head(case, best), **times, "kernels": kernels}


def head(case: Case, best: Candidate) -> Row:
    return {"problem": case.problem.key, "work": case.work, "triton": str(best)}


def summary(rows: list[Row]) -> dict[str, Any]:
    """Per kind of work: fused over separate, and both over ATen."""
    timed = [row for row in rows if "taken_us" in row]
    return {
        work: {
            "cases": len(own),
            "taken over apart": geomean([r["taken_us"] / r["apart_us"] for r in own]),
            "most": max(r["taken_us"] / r["apart_us"] for r in own),
            "taken over aten": geomean([r["taken_us"] / r["aten_us"] for r in own]),
            "apart over aten": geomean([r["apart_us"] / r["aten_us"] for r in own]),
        }
        for work in (*WORK, "all")
        if (own := [row for row in timed if work in (row["work"], "all")])
    }


def show(rows: list[Row]) -> None:
    """Print every case, then the summary."""
    columns = ("aten_us", "taken_us", "apart_us", "triton")
    table = [["problem", "before", *columns]]
    table += [
        [r.get("problem"), r["work"], *(r.get(c, r.get("fault")) for c in columns)] for r in rows
    ]
    print(as_table(table))
    found = summary(rows)
    if found:
        names = list(next(iter(found.values())))
        print()
        print(as_table([["before", *names], *([w, *part.values()] for w, part in found.items())]))


def measure(given: argparse.Namespace, hardware: Hardware) -> Iterator[Row]:
    """Yield rows until the time is up."""
    from torch_diode.integration.capture.fake_gpu import pretend

    deadline = time.monotonic() - seconds_alive() + 60 * given.minutes
    heuristic = shipped(hardware)
    torch.backends.cuda.matmul.allow_tf32 = True
    with contextlib.ExitStack() as stack:
        if given.dry:
            stack.enter_context(pretend(hardware))
            make: Callable[[Case], Row] = lambda case: dry_row(case, hardware, heuristic)  # noqa: E731
        else:
            make = Bench(hardware, heuristic, given.seed).row
        wanted = cases(given.problems)
        for case in itertools.takewhile(lambda _: time.monotonic() < deadline, wanted):
            row, fault = attempted(lambda case=case: make(case))
            yield row or {"problem": case.problem.key, "work": case.work, "fault": fault}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=len(SIZES) * len(WORK))
    parser.add_argument("--minutes", type=float, default=2, help="start no case after that")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--dry", action="store_true", help="without a GPU, with made-up times")
    parser.add_argument(
        "--output", type=Path, help="default: results/prologues.json, except with --dry"
    )
    given = parser.parse_args()
    given.output = given.output or results_file("prologues", given.dry)
    if not given.dry and not torch.cuda.is_available():
        print("skipped: needs a GPU")
        return 0
    hardware = known(given.hardware)
    start = {**made_with(hardware.name, given.seed), "dry": given.dry}
    rows: list[Row] = []
    try:
        with private_caches():
            for row in measure(given, hardware):
                rows.append(row)
                save(given.output, {**start, "summary": summary(rows), "rows": rows})
    except DiodeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
