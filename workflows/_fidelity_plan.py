"""Problems of the fidelity workflow and their candidates."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torch_diode.candidates.space import candidate_space
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, TMA_TEMPLATES, Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, MMShape
from workflows.measuring.fidelity import SIZES, size_class

BIGGEST_TILE = {"float32": (2**17, 2**16), "": (2**21, 2**19)}
"""BLOCK_M × BLOCK_N × BLOCK_K of what is thought good, and of what is spread out: without tensor
cores, larger tiles take a minute to compile."""
KINDS = (
    {"op": "mm", "dtype": "bfloat16", "layout": "nt"},
    {"op": "addmm", "dtype": "bfloat16", "layout": "nt"},
    {"op": "bmm", "dtype": "bfloat16", "layout": "nn"},
    {"op": "mm", "dtype": "float32", "layout": "nt", "tf32": True},
    {"op": "mm", "dtype": "float16", "layout": "tn"},
    {"op": "baddbmm", "dtype": "bfloat16", "layout": "nn"},
    {"op": "mm", "dtype": "bfloat16", "layout": "nn"},
    {"op": "addmm", "dtype": "float32", "layout": "nt", "tf32": True, "bias": "matrix"},
    {"op": "bmm", "dtype": "float16", "layout": "nt"},
    {"op": "mm", "dtype": "float32", "layout": "nn"},
    {"op": "addmm", "dtype": "float16", "layout": "nn"},
    {"op": "mm", "dtype": "bfloat16", "layout": "nn", "odd": True},
    {"op": "baddbmm", "dtype": "float32", "layout": "nt", "tf32": True},
    {"op": "bmm", "dtype": "float32", "layout": "nn"},
)
MOST_ROOFLINE_US = 250.0


def drawn_problems(count: int, seed: int, hardware: Hardware) -> list[MMShape]:
    """Problems balanced over kinds and size classes in any prefix."""
    found: dict[MMShape, None] = {}
    for turn in itertools.count():
        for number, kind in enumerate(KINDS):
            if len(found) == count:
                return list(found)
            size = SIZES[(turn + number) % len(SIZES)]
            source = random.Random(f"{seed} {turn} {number}")
            found[_draw(kind, size, source, hardware)] = None
    raise AssertionError


def _draw(kind: dict[str, Any], size: str, source: random.Random, hardware: Hardware) -> MMShape:
    while True:
        m, n, k = (round(2 ** source.uniform(4, 13)) for _ in range(3))
        if source.random() < 0.2:
            m = source.randint(1, 64)
        step = source.choice((128, 128, 128, 64, 16))
        if kind.get("odd"):
            m, n, k = m | 1, n | 1, k | 1
        else:
            n, k = -(-n // step) * step, -(-k // step) * step
            m = -(-m // 8) * 8 if kind["layout"][0] == "t" else m
        problem = MMShape(
            kind["op"],
            *(m, n, k),
            B=2 ** source.randint(1, 6) if kind["op"] in BATCHED else 1,
            dtype=kind["dtype"],
            transpose_a=kind["layout"][0] == "t",
            transpose_b=kind["layout"][1] == "t",
            tf32=kind.get("tf32", False),
            **({"bias": kind["bias"]} if "bias" in kind else {}),
        )
        rate = hardware.peak_tflops(problem.precision) * 1e6
        least = max(problem.flops / rate, problem.bytes_moved / hardware.memory_gbps / 1e3)
        if least <= MOST_ROOFLINE_US and size_class(problem, hardware) == size:
            return problem


@dataclass(frozen=True)
class Plan:
    """A problem and its candidates, ATen first."""

    problem: MMShape
    candidates: tuple[Candidate, ...]


def make_plans(
    problems: Sequence[MMShape], hardware: Hardware, heuristic: Heuristic, count: int, seed: int
) -> list[Plan]:
    """Candidates of each problem; problems of one kind share candidates where possible, since a
    sweep's kernel is compiled once for all of them."""
    ranked = {problem: _ranked(problem, hardware, heuristic) for problem in problems}
    kinds: dict[tuple[Any, ...], list[MMShape]] = {}
    for problem in problems:
        key = (problem.op, problem.dtype, problem.layout, problem.tf32, problem.bias)
        kinds.setdefault(key, []).append(problem)
    chosen: dict[MMShape, Plan] = {}
    for key, members in kinds.items():
        votes: Counter[Candidate] = Counter()
        for problem in members:
            votes.update(ranked[problem][: 2 * count])
        good = {c for c, _ in votes.most_common(count)}
        source = random.Random(f"{seed} {key}")
        quick = {c for p in members for c in ranked[p] if _volume(c) <= BIGGEST_TILE[_name(p)][1]}
        spread = set(source.sample(sorted(quick, key=str), min(len(quick), 3 * count // 2)))
        for problem in members:
            picked = _pick(ranked[problem], good, spread, count)
            chosen[problem] = Plan(problem, (Candidate(ATEN), *picked))
    return [chosen[problem] for problem in problems]


def swept_plans(sweep: Dataset, problems: int, count: int, seed: int) -> list[Plan]:
    """A random part of a sweep's problems, each with its fastest configs without TMA, as in a plain
    compile."""
    times = np.array(sweep.values("time_us"), np.float64)
    codes, names = sweep.codes("template")
    left_out = {ATEN, DECOMPOSE_K, *TMA_TEMPLATES}
    times[np.isin(codes, [i for i, name in enumerate(names) if name in left_out])] = np.nan
    rows = sweep.problems.fastest(times, count)
    numbers = np.unique(sweep.problems.ids[rows]).tolist()  # of many, ATen alone was timed
    picked: dict[int, list[Candidate]] = {
        number: [] for number in random.Random(seed).sample(numbers, min(problems, len(numbers)))
    }
    for row in rows:
        number = int(sweep.problems.ids[row])
        if number in picked:
            picked[number].append(sweep[int(row)].candidate)
    first = sweep.problems.first
    return [
        Plan(sweep.problem(int(first[number])), (Candidate(ATEN), *candidates))
        for number, candidates in picked.items()
    ]


def _ranked(problem: MMShape, hardware: Hardware, heuristic: Heuristic) -> list[Candidate]:
    space = candidate_space(problem, hardware)
    space = space.take(~space.is_template(DECOMPOSE_K) & ~space.is_template(ATEN))
    ranking = heuristic.rank(problem, space, hardware)
    if ranking is None:
        ranking = AnalyticalHeuristic().rank(problem, space, hardware)
        assert ranking is not None
    found = [space[int(row)] for row in ranking.order]
    return [c for c in found if _volume(c) <= BIGGEST_TILE[_name(problem)][0]]


def _pick(
    ranked: Sequence[Candidate], good: set[Candidate], spread: set[Candidate], count: int
) -> list[Candidate]:
    """A sixth the first candidates, a third the best of those shared by the kind, the rest spread
    evenly from best to worst."""
    picked = dict.fromkeys(ranked[: count // 6])
    for candidate in ranked:
        if len(picked) >= count // 2:
            break
        if candidate in good:
            picked[candidate] = None
    # A small problem may be able to run few of the shared ones.
    for allowed in (spread, set(ranked)):
        others = [c for c in ranked if c in allowed and c not in picked]
        wanted = min(count - len(picked), len(others))
        for i in range(wanted):
            picked[others[(2 * i + 1) * len(others) // (2 * wanted)]] = None
    return list(picked)


def _volume(candidate: Candidate) -> int:
    config = candidate.config
    assert config is not None
    return config.block_m * config.block_n * config.block_k


def _name(problem: MMShape) -> str:
    return "float32" if problem.dtype == "float32" and not problem.tf32 else ""
