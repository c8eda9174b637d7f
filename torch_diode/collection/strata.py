"""Problems in strata: kinds that share kernels, each with sizes drawn to cover it."""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any

from torch_diode.candidates.offers import DECOMPOSE_K_THRESHOLD
from torch_diode.collection.shape_sources import LogNormal, LogUniform, ShapeSource
from torch_diode.types.problem import MMShape

MOST_FLOPS = {"bfloat16": 2e11, "float16": 2e11, "tf32": 5e10, "float32": 6e9}
"""Above this a problem takes so long that others would be worth more."""
MOST_BYTES = 1 << 30

_MATRIX_UNIT = (("bfloat16", False), ("float16", False), ("float32", True))
"""Dtypes that matrix units multiply, and whether in TF32."""

Sizes = tuple[str, int, int, int, int]


def sizes_of(problem: MMShape) -> Sizes:
    """What training and validation never share: op, B, M, N and K."""
    return (problem.op, problem.B, problem.M, problem.N, problem.K)


@dataclass(frozen=True)
class Stratum:
    """Problems of one kind: op, dtype, layout, bias, and how their sizes divide.

    `most_m` keeps to few rows, as in decoding; `deep` to a K so long that splitting it comes into
    question; `short` to a K that may fit a block, as in attention; `many` to batches of hundreds
    and thousands of small products; `wide` to an N as large as a vocabulary, and M to the tokens
    that are decoded at a time; `column` to an N of one; `even` keeps to a K that every block divides; `n_unit` and
    `k_unit` are the powers of two that divide N and K and no higher one does, such as 1 of a
    vocabulary of 50257, 2 of 30522 and 4 of 1500 tokens; `multiples` are those N and K are rounded
    to otherwise, one of them for each problem.
    """

    op: str
    dtype: str
    layout: str
    aligned: bool = True
    bias: str = ""
    tf32: bool = False
    most_m: int = 0
    deep: bool = False
    short: bool = False
    many: bool = False
    wide: bool = False
    column: bool = False
    even: bool = False
    n_unit: int = 0
    k_unit: int = 0
    multiples: tuple[int, ...] = (64, 64, 32, 16, 8)

    @property
    def precision(self) -> str:
        """The dtype, or `tf32`."""
        return "tf32" if self.tf32 else self.dtype

    @property
    def name(self) -> str:
        """Short, for progress lines."""
        extra = (self.bias and f" {self.bias}") + (f" M<={self.most_m}" if self.most_m else "")
        told = ("deep", "short", "many", "wide", "column")
        extra += "".join(f" {name}" for name in told if getattr(self, name))
        units = ("N", self.n_unit), ("K", self.k_unit)
        extra += "".join(f" {size} of {unit}" for size, unit in units if unit)
        if not (self.n_unit or self.k_unit):
            extra = (" aligned" if self.aligned else " odd") + extra
        return f"{self.op} {self.precision} {self.layout}{extra}"

    def has(self, problem: MMShape) -> bool:
        """Whether a problem from elsewhere is of this kind, within what can be timed quickly."""
        kind = (problem.op, problem.dtype, problem.layout, problem.tf32)
        same = kind == (self.op, self.dtype, self.layout, self.tf32)
        same &= problem.bias == (self.bias or self._empty().bias)
        sizes = (problem.M, problem.N, problem.K)
        if self.aligned:
            units = (0, 1 if self.column else self.n_unit, self.k_unit)
            wanted = list(zip(sizes, units, strict=True))[self.layout[0] == "n" :]
            aligned = all(_low_bit(size) == unit if unit else size % 8 == 0 for size, unit in wanted)
            aligned &= self.k_unit > 0 or problem.K % min(self.multiples) == 0
            aligned &= not self.even or _even(problem.K) == problem.K
            aligned &= not self.column or problem.N == 1
        else:
            aligned = all(size % 2 for size in sizes)
        return same and aligned and self._quick(problem)

    def problems(
        self, count: int, seed: int, never: Container[Sizes] = (), log_normal: float = 0.5
    ) -> list[MMShape]:
        """Distinct problems of this kind, none with sizes in `never`: a share of them by the law
        of real workloads, the others evenly over the orders of magnitude."""
        source = random.Random(f"{self.name} {seed}")
        found: dict[MMShape, None] = {}
        while len(found) < count:
            law = LogNormal() if source.random() < log_normal else LogUniform(16, 8192)
            drawn = ShapeSource(
                law, (self.op,), (self.dtype,), (self.layout,), low=2, high=32768, tf32=self.tf32
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
        if self.deep:
            m, n = (round(2 ** source.uniform(0, 9)) for _ in range(2))
            k = DECOMPOSE_K_THRESHOLD * max(m, n) * source.randint(1, 16)
        if self.short:
            k = source.choice((32, 64, 64, 128, 128, 256, round(2 ** source.uniform(3, 8))))
        batch = problem.B
        if self.many:
            batch = round(2 ** source.uniform(6, 14))
            m, n, k = (round(2 ** source.uniform(1, 8.5)) for _ in range(3))
        if self.wide:
            m, n = round(2 ** source.uniform(0, 9)), round(2 ** source.uniform(15, 18))
        if self.aligned:
            step = source.choice(self.multiples)
            n, k = max(n // step, 1) * step, max(k // step, 1) * step
            m = max(m // step, 1) * step if self.layout[0] == "t" else m
            if self.even:
                k = _even(k)
            if self.deep:
                k = max(k, DECOMPOSE_K_THRESHOLD * max(m, n))
        else:
            m, n, k = m | 1, n | 1, k | 1
        n = 1 if self.column else _exactly(n, self.n_unit)
        k = _exactly(k, self.k_unit)
        bias: dict[str, Any] = {"bias": self.bias} if self.bias else {}
        return replace(problem, B=batch, M=m, N=n, K=k, **bias)


def _low_bit(size: int) -> int:
    """The highest power of two that divides a size."""
    return size & -size


def _exactly(size: int, unit: int) -> int:
    """The multiple of a power of two, but not of the next one, nearest to a size; 0: the size."""
    return (size // unit | 1) * unit if unit else size


def _even(k: int) -> int:
    """The next K below that no block leaves a rest of: a multiple of 256 or a power of two."""
    return k // 256 * 256 if k >= 256 else 1 << (k.bit_length() - 1)


def training_strata() -> list[Stratum]:
    """The kinds a training set covers, the most common first: a run that ends early has those."""
    plan: list[list[Stratum]] = []
    for dtype, tf32 in _MATRIX_UNIT:

        def kind(
            op: str, layout: str, dtype: str = dtype, tf32: bool = tf32, **more: Any
        ) -> Stratum:
            return Stratum(op, dtype, layout, tf32=tf32, **more)

        plan.append(
            [
                kind("mm", "nt"),
                kind("mm", "nn"),
                kind("addmm", "nt"),
                kind("bmm", "nn"),
                kind("bmm", "nt"),
                kind("mm", "tn"),
                kind("mm", "nt", most_m=64),
                kind("baddbmm", "nt"),
                kind("mm", "nt", aligned=False),
                kind("mm", "nn", aligned=False),
                kind("addmm", "nn"),
                kind("addmm", "nt", bias="matrix"),
                kind("bmm", "nn", aligned=False),
                kind("addmm", "nt", most_m=64),
                kind("mm", "nn", deep=True),
                kind("baddbmm", "nn"),
                kind("addmm", "nt", aligned=False),
                kind("bmm", "tn"),
                kind("mm", "tt"),
            ]
        )
    plan.append(
        [
            Stratum("mm", "float32", "nt"),
            Stratum("addmm", "float32", "nt"),
            Stratum("bmm", "float32", "nn"),
            Stratum("baddbmm", "float32", "nt"),
            Stratum("mm", "float32", "nn"),
            Stratum("addmm", "float32", "nt", most_m=64),
            Stratum("bmm", "float32", "nt"),
            Stratum("mm", "float32", "tn"),
            Stratum("mm", "float32", "nn", deep=True),
        ]
    )
    rounds = max(map(len, plan))
    first = [kinds[i] for i in range(rounds) for kinds in plan if i < len(kinds)]
    return [
        *first,
        *_short_strata(),
        *_long_batched_strata(),
        *_vector_strata(),
        *_many_strata(),
        *_row_strata(),
        *_transposed_strata(),
        *_mixed_strata(),
        *_vocabulary_strata(),
        *_thin_strata(),
    ]


def _short_strata() -> list[Stratum]:
    """Kinds of problem whose K often fits a block."""
    kinds = "bmm nt", "bmm nn", "baddbmm nt", "mm nt", "addmm nt", "mm nn"
    return [
        Stratum(op, dtype, layout, tf32=tf32, short=True, multiples=(64, 32, 16, 8))
        for op, layout in map(str.split, kinds)
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _long_batched_strata() -> list[Stratum]:
    """Batches of products with a K so long that there are few tiles: the vendor's library splits
    it, Triton's template does not."""
    return [
        Stratum("bmm", dtype, layout, tf32=tf32, deep=True)
        for layout in ("nn", "nt")
        for dtype, tf32 in _MATRIX_UNIT
    ]


def _vector_strata() -> list[Stratum]:
    """Batches whose bias is one row for all, which the vendor's library copies out first."""
    return [
        Stratum("baddbmm", dtype, layout, tf32=tf32, bias="vector", short=layout == "nt")
        for layout in ("nt", "nn")
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _many_strata() -> list[Stratum]:
    """Attention in windows and between features: small products, very many."""
    return [
        _attention(op, dtype, layout, tf32, unit)
        for unit in (1, 0)
        for op, layout in (("bmm", "nt"), ("bmm", "nn"), ("baddbmm", "nt"))
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _attention(op: str, dtype: str, layout: str, tf32: bool, unit: int) -> Stratum:
    """The number of tokens is N where K is the width of a head, and K where N is."""
    tokens = {"n_unit": unit} if layout == "nt" else {"k_unit": unit}
    return Stratum(
        op, dtype, layout, tf32=tf32, many=True, multiples=(64, 32, 16, 8), **tokens
    )


def _row_strata() -> list[Stratum]:
    """Batches of a few rows each: attention of the tokens that are decoded."""
    return [
        Stratum(op, dtype, layout, tf32=tf32, most_m=16)
        for op, layout in (("bmm", "nt"), ("baddbmm", "nt"), ("bmm", "nn"))
        for dtype, tf32 in _MATRIX_UNIT
    ]


def _transposed_strata() -> list[Stratum]:
    """A read across its rows, as a backward pass does: the kinds of it not named above."""
    return [
        *(Stratum(op, "float32", layout) for op, layout in (("bmm", "tn"), ("mm", "tt"))),
        *(
            Stratum(op, dtype, layout, tf32=tf32, many=many, multiples=(64, 32, 16, 8))
            for op, layout, many in (
                ("bmm", "tn", True),
                ("addmm", "tn", False),
                ("baddbmm", "tn", False),
                ("bmm", "tt", False),
                ("addmm", "tt", False),
            )
            for dtype, tf32 in _MATRIX_UNIT
        ),
    ]


def _mixed_strata() -> list[Stratum]:
    """Rows that loads of 16 bytes do not fit, but smaller ones do, or one operand's do and the
    other's do not: vocabularies, numbers of tokens, of pixels, of features."""
    kinds = "mm nt", "bmm nn", "addmm nt", "bmm nt", "mm nn", "baddbmm nt", "addmm nn", "mm tn"
    # Of N and K. The two halves need the same kernels and differ little: each has a half of them.
    units = {
        ("bfloat16", False): ((1, 0), (4, 0), (0, 2), (0, 4), (4, 4)),
        ("float16", False): ((2, 0), (4, 0), (0, 1), (0, 4), (2, 2)),
        ("float32", True): ((1, 0), (2, 0), (0, 1), (0, 2), (2, 2)),
        ("float32", False): ((1, 0), (0, 1), (2, 2)),
    }
    return [
        *(
            Stratum(op, dtype, layout, tf32=tf32, n_unit=n, k_unit=k, multiples=(64, 32, 16, 8))
            for op, layout in map(str.split, kinds)
            for (dtype, tf32), pairs in units.items()
            for n, k in pairs
        ),
        *(
            _attention(op, dtype, layout, tf32, unit)
            for op, layout in (("bmm", "nt"), ("bmm", "nn"), ("baddbmm", "nt"))
            for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
            for unit in ((4,) if dtype != "float32" else (2,))
        ),
    ]


def _vocabulary_strata() -> list[Stratum]:
    """The last product of a language model, over all its words."""
    units = {
        ("bfloat16", False): (0, 1, 2),
        ("float16", False): (0, 1, 2),
        ("float32", True): (0, 1),
        ("float32", False): (0, 1),
    }
    return [
        Stratum(op, dtype, "nt", tf32=tf32, wide=True, n_unit=unit, multiples=(128, 64, 32))
        for op in ("mm", "addmm")
        for (dtype, tf32), each in units.items()
        for unit in each
    ]


def _thin_strata() -> list[Stratum]:
    """A single column of results; and few rows times weights that are stored by rows."""
    precisions = (*_MATRIX_UNIT, ("float32", False))
    return [
        *(Stratum("addmm", dtype, "nn", tf32=tf32, column=True) for dtype, tf32 in precisions),
        *(
            Stratum(op, dtype, "nn", tf32=tf32, most_m=64)
            for op in ("addmm", "mm")
            for dtype, tf32 in precisions
        ),
        Stratum("addmm", "float32", "nn"),
    ]


def validation_strata() -> list[tuple[Stratum, int]]:
    """The kinds whose whole space is timed, with the number of problems of each.

    Few kinds, because compiling two thousand kernels for each is what takes the time; together
    they have every op and every precision. A kernel that has to check for the end of K is another
    kernel: in most strata K is even, in the first and the last it is not.
    """
    return [
        (Stratum("mm", "bfloat16", "nt", multiples=(64,)), 100),
        (Stratum("bmm", "bfloat16", "nn", even=True), 75),
        (Stratum("addmm", "float16", "nt", even=True), 85),
        (Stratum("bmm", "float32", "nt", tf32=True, even=True), 65),
        (Stratum("baddbmm", "float16", "nt", even=True), 65),
        (Stratum("mm", "float32", "nn", tf32=True, even=True), 70),
        (Stratum("mm", "float32", "nt", even=True), 50),
        (Stratum("mm", "bfloat16", "nn", aligned=False), 40),
    ]
