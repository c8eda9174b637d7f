"""Problems of the CPU selection benchmark: a seeded sample of two kinds of sizes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from _selection import LOG_NORMAL, REAL, REAL_MODELS

from torch_diode.collection.shape_sampling import LogNormal, ShapeSource
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.problem import MMShape

DTYPES = ("float32", "float32", "bfloat16")
"""In turn: bfloat16 has less to choose from."""
LAYOUTS = ("nt", "nn", "tn")
MOST_FLOPS, LEAST_FLOPS, MOST_BYTES = 8e9, 2e5, 1 << 28
"""Larger problems take too long, and of smaller ones a call takes longer than the product."""


@dataclass(frozen=True)
class Posed:
    """A problem, where its sizes come from, and whether its weight is a constant."""

    problem: MMShape
    origin: str
    frozen: bool

    @property
    def key(self) -> str:
        """Text that names it in the results."""
        return f"{self.problem.key}{' frozen' if self.frozen else ''}"


def posed_problems(count: int, seed: int) -> list[Posed]:
    """The first problems of a sequence in which both origins, dtypes, layouts and kinds of weight
    take turns; a transposed A is never multiplied by a frozen weight."""
    draws = {LOG_NORMAL: _log_normal(seed), REAL_MODELS: _of_real_models(seed)}
    kinds = itertools.product((True, False), LAYOUTS, DTYPES, draws)
    wanted = [kind for kind in kinds if kind[:2] != (True, "tn")]
    random.Random(seed).shuffle(wanted)
    found: dict[str, Posed] = {}
    for frozen, layout, dtype, origin in itertools.cycle(wanted):
        if len(found) == count:
            break
        shape = replace(
            next(draws[origin]),
            dtype=dtype,
            out_dtype=dtype,
            transpose_a=layout[0] == "t",
            transpose_b=layout[1] == "t",
        )
        posed = Posed(shape, origin, frozen)
        found.setdefault(posed.key, posed)
    return list(found.values())


def _log_normal(seed: int) -> Iterator[MMShape]:
    """Sizes of the law fitted to real workloads."""
    for turn in itertools.count():
        source = ShapeSource(LogNormal(rounded=True), ops=("mm", "addmm"))
        yield from filter(_fits, source.draw(200, f"cpu {seed} {turn}"))


def _of_real_models(seed: int) -> Iterator[MMShape]:
    """Sizes of the layers of real models."""
    found = [p for p in read_shapes(REAL).problems if p.op in ("mm", "addmm") and _fits(p)]
    plain = list(dict.fromkeys(MMShape(p.op, p.M, p.N, p.K) for p in found if p.bias != "matrix"))
    random.Random(seed).shuffle(plain)
    return itertools.cycle(plain)


def _fits(problem: MMShape) -> bool:
    as_float32 = replace(problem, dtype="float32", out_dtype="float32")
    small = as_float32.bytes_moved <= MOST_BYTES
    return small and LEAST_FLOPS <= problem.flops <= MOST_FLOPS
