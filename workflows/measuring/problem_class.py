"""A class of problems that share kernels, with sizes drawn to cover it."""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any

from torch_diode.candidates.gpu.eligibility import DECOMPOSE_K_THRESHOLD
from torch_diode.collection.shape_sampling import (
    LogNormal,
    LogUniform,
    ShapeSource,
    Sizes,
    sizes_of,
)
from torch_diode.types.problem import MMShape

MOST_FLOPS = {"bfloat16": 2e11, "float16": 2e11, "tf32": 5e10, "float32": 6e9}
"""Limit on the duration of a problem."""
MOST_BYTES = 1 << 30
_NAMES = {
    "large_k": "deep",
    "small_k": "short",
    "large_batch": "many",
    "large_n": "wide",
    "n_is_one": "column",
}
"""Words in the name of a class. They seed the draw, so other words would draw other problems."""


@dataclass(frozen=True)
class ProblemClass:
    """Problems of one kind: op, dtype, layout, bias, and the divisibility of their sizes.

    `most_m` limits the rows, as in decoding; `large_k` draws a K so long that it may be split;
    `small_k` a K that may fit a block, as in attention; `large_batch` batches of hundreds and
    thousands of small products; `large_n` an N as large as a vocabulary with M as in decoding;
    `n_is_one` an N of one; `k_divisible` a K that every block divides. `n_unit` and `k_unit` are
    the largest powers of two that divide N and K: 1 for a vocabulary of 50257, 2 for 30522, 4 for
    1500 tokens. Otherwise N and K are rounded to one of `multiples` per problem.
    """

    op: str
    dtype: str
    layout: str
    aligned: bool = True
    bias: str = ""
    tf32: bool = False
    most_m: int = 0
    large_k: bool = False
    small_k: bool = False
    large_batch: bool = False
    large_n: bool = False
    n_is_one: bool = False
    k_divisible: bool = False
    n_unit: int = 0
    k_unit: int = 0
    multiples: tuple[int, ...] = (64, 64, 32, 16, 8)

    @property
    def precision(self) -> str:
        """The dtype, or `tf32`."""
        return "tf32" if self.tf32 else self.dtype

    @property
    def name(self) -> str:
        """Short name, for progress lines; it seeds the draw of the problems."""
        extra = (self.bias and f" {self.bias}") + (f" M<={self.most_m}" if self.most_m else "")
        extra += "".join(f" {word}" for field, word in _NAMES.items() if getattr(self, field))
        units = ("N", self.n_unit), ("K", self.k_unit)
        extra += "".join(f" {size} of {unit}" for size, unit in units if unit)
        if not (self.n_unit or self.k_unit):
            extra = (" aligned" if self.aligned else " odd") + extra
        return f"{self.op} {self.precision} {self.layout}{extra}"

    def has(self, problem: MMShape) -> bool:
        """True if a given problem belongs to this class and is quick enough to time."""
        kind = (problem.op, problem.dtype, problem.layout, problem.tf32)
        same = kind == (self.op, self.dtype, self.layout, self.tf32)
        same &= problem.bias == (self.bias or self._empty().bias)
        if self.aligned:
            aligned = self.layout[0] == "n" or problem.M % 8 == 0
            aligned &= problem.N == 1 if self.n_is_one else _fits(problem.N, self.n_unit, 8)
            aligned &= _fits(problem.K, self.k_unit, max(min(self.multiples), 8))
            aligned &= not self.k_divisible or _divisible(problem.K) == problem.K
        else:
            aligned = all(size % 2 for size in (problem.M, problem.N, problem.K))
        return same and aligned and self._quick(problem)

    def problems(
        self, count: int, seed: int, never: Container[Sizes] = (), log_normal: float = 0.5
    ) -> list[MMShape]:
        """Draw distinct problems of this class, none with sizes in `never`: a share log-normal as
        real workloads are, the others log-uniform."""
        source = random.Random(f"{self.name} {seed}")
        found: dict[MMShape, None] = {}
        while len(found) < count:
            distribution = LogNormal() if source.random() < log_normal else LogUniform(16, 8192)
            drawn = ShapeSource(
                distribution,
                (self.op,),
                (self.dtype,),
                (self.layout,),
                low=2,
                high=32768,
                tf32=self.tf32,
            )
            problem = next(iter(drawn.draw(1, source.getrandbits(48))))
            problem = self._fitted(problem, source)
            if self._quick(problem) and sizes_of(problem) not in never:
                found[problem] = None
        return list(found)

    def _quick(self, problem: MMShape) -> bool:
        return problem.flops <= MOST_FLOPS[self.precision] and problem.bytes_moved <= MOST_BYTES

    def _empty(self) -> MMShape:
        return MMShape(self.op, 1, 1, 1, dtype=self.dtype)

    def _fitted(self, problem: MMShape, source: random.Random) -> MMShape:
        m, n, k = problem.M, problem.N, problem.K
        if self.most_m:
            m = source.randint(1, self.most_m)
        if self.large_k:
            m, n = (round(2 ** source.uniform(0, 9)) for _ in range(2))
            k = DECOMPOSE_K_THRESHOLD * max(m, n) * source.randint(1, 16)
        if self.small_k:
            k = source.choice((32, 64, 64, 128, 128, 256, round(2 ** source.uniform(3, 8))))
        batch = problem.B
        if self.large_batch:
            batch = round(2 ** source.uniform(6, 14))
            m, n, k = (round(2 ** source.uniform(1, 8.5)) for _ in range(3))
        if self.large_n:
            m, n = round(2 ** source.uniform(0, 9)), round(2 ** source.uniform(15, 18))
        if self.aligned:
            step = source.choice(self.multiples)
            n, k = max(n // step, 1) * step, max(k // step, 1) * step
            m = max(m // step, 1) * step if self.layout[0] == "t" else m
            if self.k_divisible:
                k = _divisible(k)
            if self.large_k:
                k = max(k, DECOMPOSE_K_THRESHOLD * max(m, n))
        else:
            m, n, k = m | 1, n | 1, k | 1
        n = 1 if self.n_is_one else _exactly(n, self.n_unit)
        k = _exactly(k, self.k_unit)
        bias: dict[str, Any] = {"bias": self.bias} if self.bias else {}
        return replace(problem, B=batch, M=m, N=n, K=k, **bias)


def _fits(size: int, unit: int, multiple: int) -> bool:
    """True if a size is a multiple, or has that unit if one is given."""
    return size & -size == unit if unit else size % multiple == 0


def _exactly(size: int, unit: int) -> int:
    """A size of about the same magnitude with this unit; the size itself if no unit is given."""
    return (size // unit | 1) * unit if unit else size


def _divisible(k: int) -> int:
    """The largest K not above `k` that every block divides: a multiple of 256 or a power of two."""
    return k // 256 * 256 if k >= 256 else 1 << (k.bit_length() - 1)
