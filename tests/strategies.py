"""Hypothesis strategies: problems, candidates, timings and datasets of every valid kind."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import BATCHED, DTYPES, MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet
from torch_diode.types.table import Row, Table, TableEntry
from torch_diode.types.timing import STATUSES, Timing
from torch_diode.types.validation import MAX_SIZE

SIZES = st.integers(1, 512) | st.integers(1, 2**31 - 1)
HARDWARE = ("nvidia-h200", "nvidia-h100", "amd-instinct-mi300x", "cpu-x86.64")
RELEASES = ("", "2.13.0", "2.11.0+cu130", "3.6.0.git1a2b")
WHAT = [("mm", "none"), ("bmm", "none")]
WHAT += [(op, bias) for op in ("addmm", "baddbmm") for bias in ("vector", "matrix")]
NUMBERS = [(dtype, False) for dtype in DTYPES] + [("float32", True)]

# One draw out of many combinations is a tenth of the work of drawing each part.
KINDS = st.sampled_from(
    [
        {"op": op, "bias": bias, "dtype": dtype, "tf32": tf32, "out_dtype": out_dtype}
        | {"transpose_a": a, "transpose_b": b}
        for op, bias in WHAT
        for dtype, tf32 in NUMBERS
        for out_dtype in (dtype, "float32")
        for a, b in product((False, True), repeat=2)
    ]
)
CONFIGS = [
    TritonGEMMConfig(m, n, k, group, stages, warps, *amd)
    for m, n, k in product((16, 64, 256), (32, 128), (16, 64))
    for group, stages, warps in ((8, 2, 4), (1, 0, 1), (1024, 32, 64))
    for amd in ((0, 0, 0), (2, 16, 8))
]
CANDIDATES = [
    Candidate("aten"),
    Candidate("cutlass::gemm"),
    *(Candidate("decompose_k", split_k=split) for split in (2, 16, 65536)),
    *(Candidate("triton::mm", config) for config in CONFIGS),
    *(Candidate("triton::mm_persistent_tma", config) for config in CONFIGS[::5]),
    *(Candidate("cutlass::gemm", config) for config in CONFIGS[::7]),
]
MEASURED = st.sampled_from(
    [
        {"hardware": hardware, "status": status, "method": method, "torch": a, "triton": b}
        for hardware, status, method in product(HARDWARE, STATUSES, ("sweep", "feedback"))
        for a, b in product(RELEASES, repeat=2)
    ]
)

single = st.floats(2.0**-126, 2.0**120, width=32)


@st.composite
def problems(draw: st.DrawFn, sizes: st.SearchStrategy[int] = SIZES) -> MMShape:
    kind = draw(KINDS)
    batch = draw(sizes) if kind["op"] in BATCHED else 1
    return MMShape(M=draw(sizes), N=draw(sizes), K=draw(sizes), B=batch, **kind)


def configs() -> st.SearchStrategy[TritonGEMMConfig]:
    blocks = st.sampled_from([1, 16, 32, 64, 128, 4096])
    return st.builds(
        TritonGEMMConfig,
        blocks,
        blocks,
        blocks,
        group_m=st.integers(1, 1024),
        num_stages=st.integers(0, 32),
        num_warps=st.sampled_from([1, 2, 4, 8, 64]),
        waves_per_eu=st.integers(0, 16),
        matrix_instr_nonkdim=st.integers(0, 64),
        kpack=st.integers(0, 8),
    )


def candidates() -> st.SearchStrategy[Candidate]:
    return st.sampled_from(CANDIDATES)


@st.composite
def timings(draw: st.DrawFn, shapes: st.SearchStrategy[MMShape] | None = None) -> Timing:
    measured = draw(MEASURED)
    return Timing(
        problem=draw(problems() if shapes is None else shapes),
        candidate=draw(candidates()),
        time_us=shortest(draw(single)) if measured["status"] == "ok" else None,
        spread=draw(st.none() | single.map(shortest)),
        repeats=draw(st.integers(0, 2**15 - 1)),
        **measured,
    )


def key(timing: Timing) -> tuple[Any, ...]:
    """The fields that tell a timing from all others."""
    measured = (timing.method, timing.torch, timing.triton)
    return (timing.hardware, timing.problem, timing.candidate, *measured)


SHAPES = (
    MMShape("mm", 512, 4096, 4096, transpose_b=True),
    MMShape("addmm", 64, 128, 256, dtype="float32", tf32=True, bias="matrix"),
    MMShape("bmm", 128, 128, 64, B=8, dtype="float16", out_dtype="float32"),
)
PROVENANCE = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=6),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=6), max_size=2).map(tuple),
    max_size=2,
)


@st.composite
def datasets(draw: st.DrawFn, max_size: int = 8) -> Dataset:
    """Few problems, so that timings share them; each timing once."""
    shapes = st.sampled_from([*SHAPES, draw(problems())])
    rows = draw(st.lists(timings(shapes), max_size=max_size, unique_by=key))
    return Dataset.from_timings(rows, draw(PROVENANCE))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    entry = st.builds(
        TableEntry,
        candidates(),
        time_us=st.none() | single,
        template_hash=st.none() | st.from_regex(r"[0-9a-f]{6}", fullmatch=True),
        measured=st.sampled_from(["", "2026-11-19"]),
        repeats=st.integers(0, 99),
    )
    entries = st.lists(entry, min_size=1, max_size=4, unique_by=lambda e: e.candidate).map(tuple)
    row = st.tuples(st.sampled_from(HARDWARE), problems(), entries)
    rows = draw(st.lists(row.flatmap(_with_range), max_size=6, unique_by=lambda r: r[:2]))
    names = st.sampled_from(["torch", "triton", "dataset"])
    provenance = draw(st.dictionaries(names, st.text(st.characters(codec="utf-8"), max_size=8)))
    return Table(tuple(rows), tuple(provenance.items()))


def _with_range(row: Row) -> st.SearchStrategy[Row]:
    """A row as it is, or with a range of M for its first entry."""
    hardware, problem, (first, *others) = row
    spans = st.tuples(
        st.integers(1, problem.M), st.integers(problem.M, min(problem.M + 9, MAX_SIZE))
    )
    return (st.none() | spans).map(
        lambda span: (hardware, problem, (replace(first, M=span), *others))
    )


def shape_sets() -> st.SearchStrategy[OperationShapeSet]:
    counted = st.builds(
        CountedShape,
        problems(),
        count=st.integers(1, 1000),
        origin=st.text(st.characters(codec="utf-8"), max_size=20),
    )
    return st.lists(counted, max_size=8).map(OperationShapeSet.of)


def shortest(value: float) -> float:
    """The shortest number that reads back as the same single."""
    return float(str(np.float32(value)))
