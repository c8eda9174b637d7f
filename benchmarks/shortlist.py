"""Kernels that max-autotune compiles and benchmarks for a matmul: Inductor's default list, and the
shortlist of a chip's model. Needs no GPU.

    python benchmarks/shortlist.py --hardware nvidia-a100 [--problems 40] [--compiled 4]

Inductor's real lowering runs for the chip without it, and its choices are counted before the first
is benchmarked. Those of some problems are compiled for the chip from an empty cache, one by one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

# Keep Inductor from starting compile workers; must be set before it is imported.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import numpy as np
import torch
from _live import as_table, geomean, made_with, results_file, save

from torch_diode.collection.kernels.operands import tf32_precision
from torch_diode.files.shape_sets import read_shapes
from torch_diode.hardware import known
from torch_diode.integration import registration
from torch_diode.integration.autotune.feedback import candidate_of
from torch_diode.integration.capture.default_configs import inputs_of
from torch_diode.integration.capture.fake_gpu import lower, pretend
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import ATEN
from torch_diode.types.problem import MMShape
from workflows.measuring.static_kernels import StaticKernel, compile_static

SHAPES = "diode_datasets/shapes/real_models.json"
CONFIG = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}


def choices_of(problem: MMShape) -> list[Any]:
    """The choices that Inductor would benchmark, with whatever handler is installed."""
    found: list[Any] = []

    def keep(choices: list[Any]) -> list[Any]:
        found.extend(choices)
        return choices[:1]  # one choice is not benchmarked

    undo = torch_compat.add_preprocessing(keep)
    try:
        with tf32_precision(problem.tf32):
            lower(getattr(torch, problem.op), inputs_of(problem), CONFIG, generate=False)
    finally:
        undo()
    return found


def compile_seconds(choices: Sequence[Any]) -> float:
    """Seconds to compile the templates among them, one by one."""
    start = time.perf_counter()
    for choice in choices:
        candidate = candidate_of(choice)
        if candidate is not None and candidate.config is not None:
            compile_static(StaticKernel(candidate, choice.bmreq))
    return time.perf_counter() - start


def measure(problem: MMShape, compiled: bool) -> dict[str, Any]:
    """Choices and seconds of one problem; inside `pretend`."""
    row: dict[str, Any] = {"problem": problem.key}
    with registration.paused():
        lists = {"default": choices_of(problem)}
    lists["shortlist"] = choices_of(problem)
    for name, choices in lists.items():
        row[name] = len(choices)
        row[f"{name} has ATen"] = any(
            (found := candidate_of(choice)) and found.template == ATEN for choice in choices
        )
        if compiled:
            row[f"{name} s"] = round(compile_seconds(choices), 3)
    return row


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over the problems."""
    timed = [row for row in rows if "default s" in row]
    means = {
        "problems": len(rows),
        **{name: float(np.mean([row[name] for row in rows])) for name in ("default", "shortlist")},
        "ratio": geomean([row["shortlist"] / row["default"] for row in rows]),
        "always ATen": all(row["shortlist has ATen"] for row in rows),
        "compiled": len(timed),
    }
    for name in ("default s", "shortlist s"):
        means[name] = float(np.mean([row[name] for row in timed])) if timed else None
    return {name: round(v, 3) if isinstance(v, float) else v for name, v in means.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hardware", default="nvidia-a100")
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--compiled", type=int, default=4, help="problems whose kernels compile")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--aside", action="store_true", help="keep no results")
    given = parser.parse_args(arguments)
    chip = known(given.hardware)
    problems = dict(read_shapes(SHAPES).operations)["mm"].problems
    order = np.random.default_rng(given.seed).permutation(len(problems))[: given.problems]
    registration.enable()
    rows = []
    with tempfile.TemporaryDirectory() as cache, pretend(chip):
        os.environ["TRITON_CACHE_DIR"] = cache
        for number, place in enumerate(order):
            rows.append(measure(problems[place], number < given.compiled))
    means = summary(rows)
    print(as_table([list(means), list(means.values())]))
    path = results_file(f"shortlist_{chip.name}", given.aside)
    save(path, {**made_with(chip.name, given.seed), "summary": means, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
