"""The kinds of problem that data sets are made of."""

from __future__ import annotations

from typing import Any

from workflows.measuring.problem_class import ProblemClass

_MATRIX_UNIT = (("bfloat16", False), ("float16", False), ("float32", True))
"""Dtypes that matrix units multiply, and whether in TF32."""


def training_strata() -> list[ProblemClass]:
    """The kinds a training set covers, the most common first: a run that ends early has those."""
    plan: list[list[ProblemClass]] = []
    for dtype, tf32 in _MATRIX_UNIT:

        def kind(
            op: str, layout: str, dtype: str = dtype, tf32: bool = tf32, **more: Any
        ) -> ProblemClass:
            return ProblemClass(op, dtype, layout, tf32=tf32, **more)

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
            ProblemClass("mm", "float32", "nt"),
            ProblemClass("addmm", "float32", "nt"),
            ProblemClass("bmm", "float32", "nn"),
            ProblemClass("baddbmm", "float32", "nt"),
            ProblemClass("mm", "float32", "nn"),
            ProblemClass("addmm", "float32", "nt", most_m=64),
            ProblemClass("bmm", "float32", "nt"),
            ProblemClass("mm", "float32", "tn"),
            ProblemClass("mm", "float32", "nn", deep=True),
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


def _short_strata() -> list[ProblemClass]:
    """Kinds of problem whose K often fits a block."""
    kinds = "bmm nt", "bmm nn", "baddbmm nt", "mm nt", "addmm nt", "mm nn"
    return [
        ProblemClass(op, dtype, layout, tf32=tf32, short=True, multiples=(64, 32, 16, 8))
        for op, layout in map(str.split, kinds)
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _long_batched_strata() -> list[ProblemClass]:
    """Batches of products with a K so long that there are few tiles: the vendor's library splits
    it, Triton's template does not."""
    return [
        ProblemClass("bmm", dtype, layout, tf32=tf32, deep=True)
        for layout in ("nn", "nt")
        for dtype, tf32 in _MATRIX_UNIT
    ]


def _vector_strata() -> list[ProblemClass]:
    """Batches whose bias is one row for all, which the vendor's library copies out first."""
    return [
        ProblemClass("baddbmm", dtype, layout, tf32=tf32, bias="vector", short=layout == "nt")
        for layout in ("nt", "nn")
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _many_strata() -> list[ProblemClass]:
    """Attention in windows and between features: small products, very many."""
    return [
        _attention(op, dtype, layout, tf32, unit)
        for unit in (1, 0)
        for op, layout in (("bmm", "nt"), ("bmm", "nn"), ("baddbmm", "nt"))
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _attention(op: str, dtype: str, layout: str, tf32: bool, unit: int) -> ProblemClass:
    """The number of tokens is N where K is the width of a head, and K where N is."""
    n, k = (unit, 0) if layout == "nt" else (0, unit)
    multiples = (64, 32, 16, 8)
    return ProblemClass(
        op, dtype, layout, tf32=tf32, many=True, n_unit=n, k_unit=k, multiples=multiples
    )


def _row_strata() -> list[ProblemClass]:
    """Batches of a few rows each: attention of the tokens that are decoded."""
    return [
        ProblemClass(op, dtype, layout, tf32=tf32, most_m=16)
        for op, layout in (("bmm", "nt"), ("baddbmm", "nt"), ("bmm", "nn"))
        for dtype, tf32 in _MATRIX_UNIT
    ]


def _transposed_strata() -> list[ProblemClass]:
    """A read across its rows, as a backward pass does: the kinds of it not named above."""
    return [
        *(ProblemClass(op, "float32", layout) for op, layout in (("bmm", "tn"), ("mm", "tt"))),
        *(
            ProblemClass(op, dtype, layout, tf32=tf32, many=many, multiples=(64, 32, 16, 8))
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


def _mixed_strata() -> list[ProblemClass]:
    """Rows that loads of 16 bytes do not fit, but smaller ones do, or one operand's do and the
    other's do not: vocabularies, numbers of tokens, of pixels, of features."""
    kinds = "mm nt", "bmm nn", "addmm nt", "bmm nt", "mm nn", "baddbmm nt", "addmm nn", "mm tn"
    # Of N and K. The two halves need the same kernels and differ little: each has a half of them.
    units = {
        ("bfloat16", False): ((1, 0), (4, 0), (0, 2), (0, 4), (4, 4)),
        ("float16", False): ((2, 0), (4, 0), (0, 1), (0, 4), (2, 2)),
        ("float32", True): ((1, 0), (2, 0), (0, 1), (0, 2), (2, 2)),
        ("float32", False): ((1, 0), (2, 0), (0, 1), (0, 2), (2, 2)),
    }
    return [
        *(
            ProblemClass(
                op, dtype, layout, tf32=tf32, n_unit=n, k_unit=k, multiples=(64, 32, 16, 8)
            )
            for op, layout in map(str.split, kinds)
            for (dtype, tf32), pairs in units.items()
            for n, k in pairs
        ),
        *(
            ProblemClass(
                "baddbmm", dtype, layout, bias="vector", n_unit=n, k_unit=k, multiples=(64, 8)
            )
            for dtype, layout, n, k in (("bfloat16", "nt", 4, 0), ("float32", "nn", 0, 2))
        ),
        *(
            _attention(op, dtype, layout, tf32, unit)
            for op, layout in (("bmm", "nt"), ("bmm", "nn"), ("baddbmm", "nt"))
            for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
            for unit in ((4,) if dtype != "float32" else (2,))
        ),
    ]


def _vocabulary_strata() -> list[ProblemClass]:
    """The last product of a language model, over all its words."""
    units = {
        ("bfloat16", False): (0, 1, 2),
        ("float16", False): (0, 1, 2),
        ("float32", True): (0, 1),
        ("float32", False): (0, 1),
    }
    return [
        ProblemClass(op, dtype, "nt", tf32=tf32, wide=True, n_unit=unit, multiples=(128, 64, 32))
        for op in ("mm", "addmm")
        for (dtype, tf32), each in units.items()
        for unit in each
    ]


def _thin_strata() -> list[ProblemClass]:
    """One row, of a single token; one column; few rows times weights that are stored by rows."""
    precisions = (*_MATRIX_UNIT, ("float32", False))
    kinds = {1: "mm nt, addmm nt, addmm nn, bmm nt, bmm nn", 64: "addmm nn, mm nn"}
    return [
        *(
            ProblemClass(op, dtype, layout, tf32=tf32, most_m=most)
            for most, several in kinds.items()
            for op, layout in map(str.split, several.split(", "))
            for dtype, tf32 in precisions
        ),
        *(ProblemClass("addmm", dtype, "nn", tf32=tf32, column=True) for dtype, tf32 in precisions),
        ProblemClass("addmm", "float32", "nn"),
    ]


def validation_strata() -> list[tuple[ProblemClass, int]]:
    """The kinds whose whole space is timed, with the number of problems of each.

    Few kinds, because compiling two thousand kernels for each is what takes the time; together
    they have every op and every precision. A kernel that has to check for the end of K is another
    kernel: in most strata K is even, in the first and the last two it is not.
    """
    return [
        (ProblemClass("mm", "bfloat16", "nt", multiples=(64,)), 100),
        (ProblemClass("bmm", "bfloat16", "nn", even=True), 75),
        (ProblemClass("addmm", "float16", "nt", even=True), 85),
        (ProblemClass("bmm", "float32", "nt", tf32=True, even=True), 65),
        (ProblemClass("baddbmm", "float16", "nt", even=True), 65),
        (ProblemClass("mm", "float32", "nn", tf32=True, even=True), 70),
        (ProblemClass("mm", "float32", "nt", even=True), 50),
        (ProblemClass("mm", "bfloat16", "nn", aligned=False), 40),
        (ProblemClass("bmm", "float16", "nn", k_unit=4), 40),
    ]
