"""Features of a problem on a CPU, for models with one output per candidate.

Library kernels choose their own blocking, so that candidates have no features: what matters is how
the problem's sizes fit the caches, the micro-kernels and the threads. The same formulas serve a
dataset's arrays and, in plain numbers, the single problem of a compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_diode.model.features.kernel_times import kernel_us
from torch_diode.model.features.names import (
    ALIASING_BYTES,
    CPU_PRECISIONS,
    ELEMENTS,
    ESTIMATED,
    ESTIMATED_BLOCK,
    FEW_ROWS,
    HEIGHTS,
    TILES,
    WIDTHS,
)
from torch_diode.model.features.problem_arrays import one_row_per_problem, select
from torch_diode.model.features.roofline import bounds, core_rates
from torch_diode.types.candidate import CPP_GEMM
from torch_diode.types.problem import BIASES, OPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_diode.model.features.problem_arrays import Floats, Problems, Values
    from torch_diode.types.hardware import Hardware

_LARGEST_LOW_BIT = 256


def cpu_features(problems: Problems, hardware: Hardware) -> Floats:
    """Block of `CPU_NAMES`, one row per problem."""
    p, xp = problems, problems.xp
    b = bounds(p, hardware)
    threads = xp.maximum(p.threads, 1.0)
    columns = [
        *map(xp.log2, (p.B, p.M, p.N, p.K, b.flops, b.moved, b.flops / b.moved, b.outputs)),
        *map(xp.log, (b.roofline_us, b.compute_us / b.memory_us)),
        *map(xp.log2, (threads, b.flops / threads)),
        *[p.op == number for number in range(len(OPS))],
        *[p.precision == number for number in range(len(CPU_PRECISIONS))],
        *(p.transpose_a, p.transpose_b),
        *[p.bias == number for number in range(1, len(BIASES))],
        *map(xp.log2, (p.M / p.N, p.K / p.M, p.K / p.N, p.B * p.M / threads)),
        *_cache_use(p, hardware),
        *_rows(p),
        *[xp.log2(xp.minimum(size, _LARGEST_LOW_BIT)) / 8 for size in p.low],
        *[_fill(p, p.M, height) for height in HEIGHTS],
        *[_fill(p, p.N, width) for width in WIDTHS],
        *[_fill(p, p.B * _count(p, p.M, m) * _count(p, p.N, n), threads) for m, n in TILES],
        *[size <= few for size in (p.M, p.N, p.K) for few in FEW_ROWS],
        *[xp.log(kernel_us(p, hardware, name) / b.roofline_us) for name in ESTIMATED],
        xp.log(kernel_us(p, hardware, CPP_GEMM, ESTIMATED_BLOCK) / b.roofline_us),
    ]
    return one_row_per_problem(columns)


def _cache_use(p: Problems, hardware: Hardware) -> Iterator[Values]:
    """Bytes of each matrix, of all, and of one row of A, over the size of each cache."""
    log2 = p.xp.log2
    a, b, c = p.M * p.K * p.item, p.K * p.N * p.item, p.M * p.N * p.out_item
    sizes = [capacity for capacity, _ in core_rates(hardware).levels[:3]]
    for part in (a, b, c, a + b + c):
        yield from (log2(part / size) for size in sizes)
    yield from (log2(p.K * p.item / size) for size in sizes[:2])


def _rows(p: Problems) -> Iterator[Values]:
    """Alignment of the rows of A, B and the output as they lie in memory."""
    low_m, low_n, low_k = p.low
    inner = (
        (select(p.transpose_a, low_m, low_k), p.item),
        (select(p.transpose_b, low_k, low_n), p.item),
        (low_n, p.out_item),
    )
    for low, _ in inner:
        yield from (low >= count for count in ELEMENTS)
    for low, item in inner:
        yield from (low * item >= size for size in ALIASING_BYTES)


def _count(p: Problems, size: Values, block: float) -> Values:
    return p.xp.ceil(size / block)


def _fill(p: Problems, size: Values, block: Values) -> Values:
    """Used share of the last block."""
    return size / (p.xp.ceil(size / block) * block)
