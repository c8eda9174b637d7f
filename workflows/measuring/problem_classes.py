"""Problem classes of the shipped data sets."""

from __future__ import annotations

from typing import Any

from workflows.measuring.problem_class import ProblemClass

_MATRIX_UNIT = (("bfloat16", False), ("float16", False), ("float32", True))
"""Dtypes that matrix units multiply, and whether in TF32."""


def training_classes() -> list[ProblemClass]:
    """Classes of the training set, the most common first, so that an interrupted run has those."""
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
                kind("mm", "nn", large_k=True),
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
            ProblemClass("mm", "float32", "nn", large_k=True),
        ]
    )
    rounds = max(map(len, plan))
    first = [kinds[i] for i in range(rounds) for kinds in plan if i < len(kinds)]
    return [
        *first,
        *_small_k_classes(),
        *_large_k_batched_classes(),
        *_vector_classes(),
        *_large_batch_classes(),
        *_row_classes(),
        *_transposed_classes(),
        *_mixed_classes(),
        *_vocabulary_classes(),
        *_thin_classes(),
    ]


def _small_k_classes() -> list[ProblemClass]:
    """Classes whose K often fits a block."""
    kinds = "bmm nt", "bmm nn", "baddbmm nt", "mm nt", "addmm nt", "mm nn"
    return [
        ProblemClass(op, dtype, layout, tf32=tf32, small_k=True, multiples=(64, 32, 16, 8))
        for op, layout in map(str.split, kinds)
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _large_k_batched_classes() -> list[ProblemClass]:
    """Batches with a K so long that there are few tiles: the vendor's library splits it, Triton's
    template does not."""
    return [
        ProblemClass("bmm", dtype, layout, tf32=tf32, large_k=True)
        for layout in ("nn", "nt")
        for dtype, tf32 in _MATRIX_UNIT
    ]


def _vector_classes() -> list[ProblemClass]:
    """Batches with one bias row for all, which the vendor's library copies first."""
    return [
        ProblemClass("baddbmm", dtype, layout, tf32=tf32, bias="vector", small_k=layout == "nt")
        for layout in ("nt", "nn")
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _large_batch_classes() -> list[ProblemClass]:
    """Attention in windows and between features: very many small products."""
    return [
        _attention(op, dtype, layout, tf32, unit)
        for unit in (1, 0)
        for op, layout in (("bmm", "nt"), ("bmm", "nn"), ("baddbmm", "nt"))
        for dtype, tf32 in (*_MATRIX_UNIT, ("float32", False))
    ]


def _attention(op: str, dtype: str, layout: str, tf32: bool, unit: int) -> ProblemClass:
    """Class whose number of tokens is N (layout nt) or K (nn); the other is the width of a head."""
    n, k = (unit, 0) if layout == "nt" else (0, unit)
    multiples = (64, 32, 16, 8)
    return ProblemClass(
        op, dtype, layout, tf32=tf32, large_batch=True, n_unit=n, k_unit=k, multiples=multiples
    )


def _row_classes() -> list[ProblemClass]:
    """Batches of a few rows each: attention while decoding."""
    return [
        ProblemClass(op, dtype, layout, tf32=tf32, most_m=16)
        for op, layout in (("bmm", "nt"), ("baddbmm", "nt"), ("bmm", "nn"))
        for dtype, tf32 in _MATRIX_UNIT
    ]


def _transposed_classes() -> list[ProblemClass]:
    """Transposed A, as in a backward pass: classes not listed above."""
    return [
        *(ProblemClass(op, "float32", layout) for op, layout in (("bmm", "tn"), ("mm", "tt"))),
        *(
            ProblemClass(
                op, dtype, layout, tf32=tf32, large_batch=large_batch, multiples=(64, 32, 16, 8)
            )
            for op, layout, large_batch in (
                ("bmm", "tn", True),
                ("addmm", "tn", False),
                ("baddbmm", "tn", False),
                ("bmm", "tt", False),
                ("addmm", "tt", False),
            )
            for dtype, tf32 in _MATRIX_UNIT
        ),
    ]


def _mixed_classes() -> list[ProblemClass]:
    """Rows aligned to less than 16 bytes, in one or both operands: vocabularies, numbers of tokens,
    pixels and features."""
    kinds = "mm nt", "bmm nn", "addmm nt", "bmm nt", "mm nn", "baddbmm nt", "addmm nn", "mm tn"
    # Units of N and K, split between the two half precisions, which need the same kernels.
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


def _vocabulary_classes() -> list[ProblemClass]:
    """Output projection of a language model."""
    units = {
        ("bfloat16", False): (0, 1, 2),
        ("float16", False): (0, 1, 2),
        ("float32", True): (0, 1),
        ("float32", False): (0, 1),
    }
    return [
        ProblemClass(op, dtype, "nt", tf32=tf32, large_n=True, n_unit=unit, multiples=(128, 64, 32))
        for op in ("mm", "addmm")
        for (dtype, tf32), each in units.items()
        for unit in each
    ]


def _thin_classes() -> list[ProblemClass]:
    """One row (a single token), one column, and few rows times row-major weights."""
    precisions = (*_MATRIX_UNIT, ("float32", False))
    kinds = {1: "mm nt, addmm nt, addmm nn, bmm nt, bmm nn", 64: "addmm nn, mm nn"}
    return [
        *(
            ProblemClass(op, dtype, layout, tf32=tf32, most_m=most)
            for most, several in kinds.items()
            for op, layout in map(str.split, several.split(", "))
            for dtype, tf32 in precisions
        ),
        *(
            ProblemClass("addmm", dtype, "nn", tf32=tf32, n_is_one=True)
            for dtype, tf32 in precisions
        ),
        ProblemClass("addmm", "float32", "nn"),
    ]


def validation_classes() -> list[tuple[ProblemClass, int]]:
    """Classes whose complete space is timed, with the number of problems of each.

    Few classes, because each needs two thousand compiled kernels; together they have every op and
    every precision. A kernel that checks for the end of K is another kernel: in most classes every
    block divides K, in the first and the last two it does not.
    """
    return [
        (ProblemClass("mm", "bfloat16", "nt", multiples=(64,)), 100),
        (ProblemClass("bmm", "bfloat16", "nn", k_divisible=True), 75),
        (ProblemClass("addmm", "float16", "nt", k_divisible=True), 85),
        (ProblemClass("bmm", "float32", "nt", tf32=True, k_divisible=True), 65),
        (ProblemClass("baddbmm", "float16", "nt", k_divisible=True), 65),
        (ProblemClass("mm", "float32", "nn", tf32=True, k_divisible=True), 70),
        (ProblemClass("mm", "float32", "nt", k_divisible=True), 50),
        (ProblemClass("mm", "bfloat16", "nn", aligned=False), 40),
        (ProblemClass("bmm", "float16", "nn", k_unit=4), 40),
    ]
