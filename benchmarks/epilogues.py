"""Whether counting the work after a matmul selects the faster side. Needs a GPU.

    python benchmarks/epilogues.py --minutes 3 [--problems 60]
    python benchmarks/epilogues.py --dry --problems 6      # no GPU: real decisions, made-up times

A matmul followed by pointwise work is compiled four ways: ATen and the model's best Triton config,
each with and without the work. All four are replayed as CUDA graphs and timed in turn with a cold
L2. The results are ATen's real extra cost of the work against the decision's estimate, and the time
of torch-diode's choice, with and without the estimate, over the faster side.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# torch-diode is enabled explicitly below.
os.environ["TORCH_DIODE"] = "0"

import numpy as np
import torch
from _captured import captured, captured_with
from _live import (
    Row,
    as_table,
    attempted,
    geomean,
    made_with,
    quantile,
    results_file,
    save,
    shipped,
)
from torch import Tensor
from torch.nn import functional

from torch_diode.hardware import known
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration.deciding.epilogue_cost import LONG, SHORT, STEPS, Epilogue
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from workflows.measuring.private_caches import private_caches
from workflows.measuring.worker_state import seconds_alive

SIZES = (
    (2048, 3072, 768),
    (512, 768, 768),
    (128, 4096, 4096),
    (4096, 4096, 1024),
    (16, 14336, 4096),
    (1024, 512, 256),
    (6304, 768, 768),
    (64, 2048, 512),
    (256, 1024, 1024),
    (2048, 256, 1024),
)
"""M, N, K."""


def product(x: Tensor, w: Tensor) -> Tensor:
    """The matmul alone, with a linear layer's weight."""
    return torch.mm(x, w.t())


WORK: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "bias": (lambda x, w, b: product(x, w) + b, ("n",)),
    "gelu": (lambda x, w: functional.gelu(product(x, w)), ()),
    "bias, gelu": (lambda x, w, b: functional.gelu(product(x, w) + b), ("n",)),
    "silu, times": (lambda x, w, z: functional.silu(product(x, w)) * z, ("mn",)),
    "residual": (lambda x, w, r: product(x, w) + r, ("mn",)),
    "cast": (lambda x, w: product(x, w).float(), ()),
}
"""Work after the matmul, and its other input: a vector along N, or a matrix like the product."""


@dataclass(frozen=True)
class Case:
    """One matmul and the work after it."""

    size: tuple[int, int, int]
    work: str

    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the inputs: x, the weight, and the inputs of the work."""
        m, n, k = self.size
        extra = {"n": (n,), "mn": (m, n)}
        return [(m, k), (n, k), *(extra[name] for name in WORK[self.work][1])]


def cases(count: int, seed: int) -> list[Case]:
    """All kinds of work in turn, so that any prefix has each."""
    found = []
    for turn, size in enumerate(SIZES):
        works = list(WORK)
        random.Random(f"{seed} {turn}").shuffle(works)
        found += [Case(size, work) for work in works]
    return sorted(found, key=lambda c: (found.index(c) % len(WORK), SIZES.index(c.size)))[:count]


# With the GPU


class Bench:
    """Compiles, captures and times."""

    def __init__(self, hardware: Hardware, heuristic: Heuristic, seed: int) -> None:
        from torch_diode.collection.timers.cuda import CudaTimer

        self.heuristic = heuristic
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.timer = CudaTimer(self.device, hardware.l2_bytes, seed)

    def row(self, case: Case) -> Row:
        """Decisions and times of one case."""
        inputs = [
            torch.randn(shape, device=self.device, dtype=torch.bfloat16) for shape in case.shapes()
        ]
        fn = WORK[case.work][0]
        expected = fn(*inputs).float()
        counted, aten = self._observed(fn, inputs, epilogues=True)
        uncounted, _ = self._observed(fn, inputs, epilogues=False)
        row = decision_row(case, counted, uncounted)
        best = best_triton(counted)
        if best is None:
            return row
        triton, result = captured_with(fn, inputs, best)
        row["difference"] = float((result.float() - expected).norm() / expected.norm())
        alone = [
            captured_with(product, inputs[:2], candidate)[0]
            for candidate in (Candidate(ATEN), best)
        ]
        found = self.timer.measure([aten, triton, *alone], ((float("inf"), 30),))
        names = ("aten_us", "triton_us", "aten_alone_us", "triton_alone_us")
        row |= {name: one.time_us for name, one in zip(names, found, strict=True)}
        return row | with_ratios(row)

    def _observed(
        self, fn: Callable[..., Tensor], inputs: list[Tensor], *, epilogues: bool
    ) -> tuple[Any, Callable[[], Any]]:
        """Torch-diode's decision while torch compiles its own choice, ATen."""
        from torch_diode.integration import registration

        before = len(registration.explain())
        with registration.using(self.heuristic, "observe", epilogues=epilogues):
            replay, _ = captured(fn, inputs)
            found = registration.explain()[before:]
        return (found[-1] if found else None), replay


# Without one


def dry_row(case: Case, heuristic: Heuristic) -> Row:
    """Decisions of the real lowering for the chip, with predicted times."""
    from torch_diode.integration import registration
    from torch_diode.integration.capture.fake_gpu import Input, lower

    inputs = [Input(shape) for shape in case.shapes()]
    found = []
    for epilogues in (True, False):
        with registration.using(heuristic, epilogues=epilogues):
            lower(WORK[case.work][0], inputs, generate=False)
            found.append(registration.explain()[-1])
    row = decision_row(case, *found)
    row |= {"aten_us": 10.0 + row["counted_us"], "triton_us": 10.0}
    row |= {"aten_alone_us": 9.0, "triton_alone_us": 10.0, "difference": 0.0}
    return row | with_ratios(row)


# Both


def decision_row(case: Case, counted: Any, uncounted: Any) -> Row:
    """Decisions with and without the epilogue's estimate."""
    row: Row = {"M": case.size[0], "N": case.size[1], "K": case.size[2], "work": case.work}
    if counted is None or uncounted is None:
        return {**row, "fault": "no decision"}
    return {
        **row,
        "problem": counted.problem.key,
        "then": counted.epilogue,
        "counted_us": _added(counted.epilogue),
        "with": str(counted.winner.candidate),
        "without": str(uncounted.winner.candidate),
    }


def _added(text: str) -> float:
    """Microseconds in a decision's epilogue note."""
    return float(text.rpartition("+ ")[2].removesuffix(" us)")) if text else 0.0


def best_triton(decision: Any) -> Candidate | None:
    """The first config in a decision."""
    if decision is None:
        return None
    entries = (decision.winner, *decision.runners_up)
    return next((e.candidate for e in entries if e.candidate.config is not None), None)


def with_ratios(row: Row) -> Row:
    """ATen's measured extra cost of the work, and each choice over the faster side."""
    sides = {True: row["aten_us"], False: row["triton_us"]}
    best = min(sides.values())
    extra = (row["aten_us"] - row["aten_alone_us"]) - (row["triton_us"] - row["triton_alone_us"])
    return {
        "extra_us": round(extra, 3),
        "with_over_best": sides[row["with"] == ATEN] / best,
        "without_over_best": sides[row["without"] == ATEN] / best,
    }


def summary(rows: list[Row], hardware: Hardware) -> dict[str, Any]:
    """Summary of all cases, and of those with an estimate."""
    timed = [row for row in rows if "with_over_best" in row]
    found = [row for row in timed if row["counted_us"]]
    return {
        "cases": len(timed),
        "counted in": len(found),
        "chosen over the faster side": geomean([r["with_over_best"] for r in timed]),
        "the same, nothing counted": geomean([r["without_over_best"] for r in timed]),
        "chose the slower side by more than 2%": sum(r["with_over_best"] > 1.02 for r in timed),
        "the same, nothing counted, by more than 2%": sum(
            r["without_over_best"] > 1.02 for r in timed
        ),
        "measured minus counted us, quartiles": [
            quantile([r["extra_us"] - r["counted_us"] for r in found], share)
            for share in (0.25, 0.5, 0.75)
        ],
        "fitted": fitted(found, hardware),
        "by work": {work: by_work([row for row in timed if row["work"] == work]) for work in WORK},
    }


def by_work(rows: list[Row]) -> Row:
    """Summary of one kind of work."""
    return {
        "cases": len(rows),
        "counted in": sum(row["counted_us"] > 0 for row in rows),
        "chosen over the faster side": geomean([row["with_over_best"] for row in rows]),
        "the same, nothing counted": geomean([row["without_over_best"] for row in rows]),
        "ATen over Triton": geomean([row["aten_us"] / row["triton_us"] for row in rows]),
    }


def fitted(rows: list[Row], hardware: Hardware) -> dict[str, Any]:
    """Least-squares fit of the decision's constants, errors as shares of ATen's time."""
    names = ("LAUNCH_US", "IN_L2", "IN_MEMORY", "a long function", "a short one")
    if len(rows) < 2 * len(names):
        return {}
    terms = np.array([list(_terms(row, hardware)) for row in rows])
    columns = [0, *np.flatnonzero(np.ptp(terms, axis=0)).tolist()]
    weights = 1 / np.array([row["aten_us"] for row in rows])
    extra = np.array([row["extra_us"] for row in rows])
    found = np.linalg.lstsq(terms[:, columns] * weights[:, None], extra * weights, rcond=None)[0]
    left = (terms[:, columns] @ found - extra) * weights
    values = {names[c]: round(float(v), 3) for c, v in zip(columns, found, strict=True)}
    return {**values, "error, share of ATen's time": round(float(np.sqrt((left**2).mean())), 4)}


def _terms(row: Row, hardware: Hardware) -> Iterator[float]:
    """Factors of each constant in a row's extra time."""
    ops = row["then"].partition(" (")[0].split(", ")
    elements = row["M"] * row["N"]
    work = Epilogue(tuple(ops), elements, 2 * elements)
    inside = work.fits_l2(hardware)
    yield 1.0
    yield work.moving_us(hardware) * inside
    yield work.moving_us(hardware) * (not inside)
    for steps in (LONG, SHORT):
        yield -work.step_us(hardware) * sum(STEPS.get(op) == steps for op in ops)


def show(rows: list[Row], hardware: Hardware) -> None:
    """Print every case, then the summary."""
    columns = ("aten_us", "triton_us", "counted_us", "extra_us", "with_over_best")
    table: list[list[Any]] = [["problem", "then", *columns, "chosen", "chosen uncounted"]]
    for row in rows:
        values = [row.get(column) for column in columns]
        chosen = [row.get("with"), row.get("without")]
        table.append([row.get("problem", row.get("fault")), row["work"], *values, *chosen])
    print(as_table(table))
    found = summary(rows, hardware)
    kinds = {work: part for work, part in found.pop("by work").items() if part["cases"]}
    if kinds:
        names = list(next(iter(kinds.values())))
        print()
        print(as_table([["then", *names], *([w, *part.values()] for w, part in kinds.items())]))
        print()
    for name, value in found.items():
        shown = f"{value:.4g}" if isinstance(value, (int, float)) else value
        print(f"{name:46} {shown}")


def measure(given: argparse.Namespace, hardware: Hardware) -> Iterator[Row]:
    """Yield rows until the time is up."""
    from torch_diode.integration.capture.fake_gpu import pretend

    deadline = time.monotonic() - seconds_alive() + 60 * given.minutes
    heuristic = shipped(hardware)
    wanted = cases(given.problems, given.seed)
    with contextlib.ExitStack() as stack:
        if given.dry:
            stack.enter_context(pretend(hardware))
            make: Callable[[Case], Row] = lambda case: dry_row(case, heuristic)  # noqa: E731
        else:
            make = Bench(hardware, heuristic, given.seed).row
        for case in itertools.takewhile(lambda _: time.monotonic() < deadline, wanted):
            row, fault = attempted(lambda case=case: make(case))
            yield row if row is not None else {**decision_row(case, None, None), "fault": fault}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=len(SIZES) * len(WORK))
    parser.add_argument("--minutes", type=float, default=3, help="begin nothing after that")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--dry", action="store_true", help="without a GPU, with made-up times")
    parser.add_argument("--output", type=Path, help="results/epilogues.json, but for --dry")
    given = parser.parse_args()
    given.output = given.output or results_file("epilogues", given.dry)
    if not given.dry and not torch.cuda.is_available():
        print("skipped: needs a GPU")
        return 0
    hardware = known(given.hardware)
    head = {**made_with(hardware.name, given.seed), "dry": given.dry}
    rows: list[Row] = []
    try:
        with private_caches():
            for row in measure(given, hardware):
                rows.append(row)
                save(given.output, {**head, "summary": summary(rows, hardware), "rows": rows})
    except DiodeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    show(rows, hardware)
    return 0


if __name__ == "__main__":
    sys.exit(main())
