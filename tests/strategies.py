"""What hypothesis draws: problems, candidates, timings and datasets, every valid kind of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import BATCHED, DTYPES, OPS, MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet
from torch_diode.types.table import Table, TableEntry
from torch_diode.types.timing import STATUSES, Timing

SIZES = st.integers(1, 512) | st.integers(1, 2**31 - 1)
HARDWARE = st.sampled_from(["nvidia-h200", "nvidia-h100", "amd-instinct-mi300x", "cpu-x86.64"])
RELEASES = st.sampled_from(["", "2.13.0", "2.11.0+cu130", "3.6.0.git1a2b"])
POWERS = st.sampled_from([16, 32, 64, 128, 256])

single = st.floats(2.0**-126, 2.0**120, width=32)


@st.composite
def problems(draw: st.DrawFn, sizes: st.SearchStrategy[int] = SIZES) -> MMShape:
    op = draw(st.sampled_from(OPS))
    dtype = draw(st.sampled_from(DTYPES))
    bias = draw(st.sampled_from(["vector", "matrix"])) if op in ("addmm", "baddbmm") else "none"
    return MMShape(
        op,
        draw(sizes),
        draw(sizes),
        draw(sizes),
        B=draw(sizes) if op in BATCHED else 1,
        dtype=dtype,
        out_dtype=draw(st.sampled_from([dtype, "float32"])),
        transpose_a=draw(st.booleans()),
        transpose_b=draw(st.booleans()),
        tf32=draw(st.booleans()) if dtype == "float32" else False,
        bias=bias,
    )


@st.composite
def configs(draw: st.DrawFn) -> TritonGEMMConfig:
    return TritonGEMMConfig(
        draw(POWERS),
        draw(POWERS),
        draw(POWERS),
        group_m=draw(st.integers(1, 1024)),
        num_stages=draw(st.integers(0, 32)),
        num_warps=draw(st.sampled_from([1, 2, 4, 8, 64])),
        waves_per_eu=draw(st.integers(0, 16)),
        matrix_instr_nonkdim=draw(st.sampled_from([0, 16, 64])),
        kpack=draw(st.integers(0, 8)),
    )


def candidates() -> st.SearchStrategy[Candidate]:
    triton = st.sampled_from(["triton::mm", "triton::bmm", "triton::mm_persistent_tma"])
    return st.one_of(
        st.just(Candidate("aten")),
        st.builds(Candidate, triton, configs()),
        st.builds(Candidate, st.just("cutlass::gemm"), configs() | st.none()),
        st.builds(Candidate, st.just("decompose_k"), split_k=st.integers(2, 65536)),
    )


@st.composite
def timings(
    draw: st.DrawFn, shapes: st.SearchStrategy[MMShape] | None = None, spread: bool = True
) -> Timing:
    status = draw(st.sampled_from(STATUSES))
    return Timing(
        draw(HARDWARE),
        draw(problems() if shapes is None else shapes),
        draw(candidates()),
        shortest(draw(single)) if status == "ok" else None,
        status=status,
        spread=shortest(draw(single)) if spread and draw(st.booleans()) else None,
        repeats=draw(st.integers(0, 2**15 - 1)),
        method=draw(st.sampled_from(["sweep", "feedback"])),
        torch=draw(RELEASES),
        triton=draw(RELEASES),
    )


def key(timing: Timing) -> tuple[Any, ...]:
    """What makes a timing this one and no other."""
    measured = (timing.method, timing.torch, timing.triton)
    return (timing.hardware, timing.problem, timing.candidate, *measured)


PROVENANCE = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=3).map(tuple),
    max_size=3,
)


@st.composite
def datasets(draw: st.DrawFn, max_size: int = 12) -> Dataset:
    """Few problems, so that several timings share one; each timing once."""
    shapes = st.sampled_from(draw(st.lists(problems(), min_size=1, max_size=4)))
    rows = draw(st.lists(timings(shapes), max_size=max_size, unique_by=key))
    return Dataset.from_timings(rows, draw(PROVENANCE))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    entry = st.builds(
        TableEntry,
        candidates(),
        time_us=st.none() | single,
        template_hash=st.none() | st.from_regex(r"[0-9a-f]{6}", fullmatch=True),
    )
    entries = st.lists(entry, min_size=1, max_size=4, unique_by=lambda e: e.candidate).map(tuple)
    row = st.tuples(HARDWARE, problems(), entries)
    rows = draw(st.lists(row, max_size=6, unique_by=lambda r: r[:2]))
    names = st.sampled_from(["torch", "triton", "dataset"])
    provenance = draw(st.dictionaries(names, st.text(st.characters(codec="utf-8"), max_size=8)))
    return Table(tuple(rows), tuple(sorted(provenance.items())))


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
