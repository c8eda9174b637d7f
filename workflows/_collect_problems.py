"""Problems of the shipped data sets; training and validation share no sizes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np

from torch_diode.collection.shape_sampling import LogNormal, LogUniform, Sizes, sizes_of
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.problem import BATCHED, MMShape
from workflows.measuring.problem_class import MOST_BYTES, MOST_FLOPS, ProblemClass
from workflows.measuring.problem_classes import validation_classes

REAL = Path(__file__).parents[1] / "diode_datasets/shapes/real_models.json"
REAL_SHARE = 0.5
VALIDATION_SEED = 20_000
VALIDATION_ROUNDS = 2
"""Draws of validation problems that are excluded from training."""


def validation_problems(number: int) -> list[tuple[ProblemClass, list[MMShape]]]:
    """Problems of each validation class: up to half from real models, the rest log-normal."""
    seed = VALIDATION_SEED + number
    real = read_shapes(REAL).problems
    chosen = []
    for problem_class, count in validation_classes():
        own = sorted(p for p in real if problem_class.has(p))
        picked = random.Random(f"{problem_class.name} {seed}").sample(
            own, min(len(own), round(REAL_SHARE * count))
        )
        taken = {sizes_of(p) for p in picked}
        drawn = problem_class.problems(count - len(picked), seed, taken, log_normal=1.0)
        chosen.append((problem_class, [*picked, *drawn]))
    return chosen


def never_trained_on() -> frozenset[Sizes]:
    """Op and sizes of all validation problems."""
    held = {sizes_of(p) for p in read_shapes(REAL).problems}
    for number in range(VALIDATION_ROUNDS):
        held |= {sizes_of(p) for _, drawn in validation_problems(number) for p in drawn}
    return frozenset(held)


def vendor_problems(count: int, seed: int) -> list[MMShape]:
    """Problems for the vendor's kernel alone: every kind, sizes from several distributions."""
    source = random.Random(seed)
    never = never_trained_on()
    found: dict[MMShape, None] = {}
    while len(found) < count:
        problem = _vendor_problem(source)
        limit = MOST_FLOPS[problem.precision]
        small = problem.flops <= limit and problem.bytes_moved <= MOST_BYTES
        if small and sizes_of(problem) not in never:
            found[problem] = None
    return list(found)


def _vendor_problem(source: random.Random) -> MMShape:
    op = source.choices(("mm", "addmm", "bmm", "baddbmm"), (7, 3, 4, 3))[0]
    words = op not in BATCHED and source.random() < 0.15
    dtype, tf32 = source.choices(
        (("bfloat16", False), ("float16", False), ("float32", True), ("float32", False)),
        (6, 4, 2, 1) if words else (3, 2, 12, 1),  # most of what is hardest to predict
    )[0]
    layout = source.choices(("nt", "nn", "tn", "tt"), (8, 8, 3, 1))[0]
    distribution = LogNormal() if source.random() < 0.5 else LogUniform(16, 8192)
    m, n, k = (min(max(size, 1), 32768) for size in distribution.sizes(source))
    if source.random() < 0.2:
        m = source.randint(1, 64)
    if source.random() < 0.15:  # long and thin, where the library splits K
        m, n = (round(2 ** source.uniform(2, 10)) for _ in range(2))
        k = round(2 ** source.uniform(11, 15))
    if words:
        m, n = round(2 ** source.uniform(0, 9)), round(2 ** source.uniform(15, 18))
    # Real sizes are mostly multiples of 64 and 128 or powers of two, sometimes odd.
    step, other = source.choices((1, 8, 16, 32, 64, 128, 256), (2, 3, 3, 3, 6, 4, 3), k=2)
    if source.random() < 0.7:
        other = step
    n, k = max(round(n / other), 1) * other, max(round(k / step), 1) * step
    if source.random() < 0.4:
        m = max(round(m / step), 1) * step
    if source.random() < 0.15:
        m, n, k = (1 << round(np.log2(size)) for size in (m, n, k))
    batch = 1
    if op in BATCHED:
        batch = 2 ** source.randint(0, 8) if source.random() < 0.5 else source.randint(1, 256)
        if source.random() < 0.3:  # attention in windows, products of features
            batch = round(2 ** source.uniform(6, 14))
            m, n, k = (min(size, round(2 ** source.uniform(1, 8.5))) for size in (m, n, k))
    shares = {"addmm": (3, 1), "baddbmm": (1, 2)}.get(op)
    bias = source.choices(("vector", "matrix"), shares)[0] if shares else ""
    ta, tb = layout[0] == "t", layout[1] == "t"
    problem = MMShape(op, m, n, k, batch, dtype, transpose_a=ta, transpose_b=tb, tf32=tf32)
    return replace(problem, bias=bias) if bias else problem
