"""Which templates come into question for a problem, and the splits of K that one of them has.

Inductor's own conditions, read in `torch/_inductor/utils.py` (`use_triton_template`,
`can_use_tma`, `use_decompose_k_choice`, `get_k_splits`), for tensors without padding or offset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from torch_diode.candidates.gpu.exhaustive import TMA_TEMPLATES, TRITON_TEMPLATES
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, DTYPE_BYTES, MMShape

TRITON_DTYPES = ("bfloat16", "float16", "float32")
DECOMPOSE_K_THRESHOLD = 32
"""K has to be this many times M, and N, for Inductor to think of splitting it."""

TMA_BYTES = 16
"""What the rows of an operand read through a TMA descriptor are multiples of."""
_LEAST_K_PART = 128
_MOST_SPLITS = 65536
_DATACENTER_BLACKWELL = (100, 103)


def offered_templates(problem: MMShape, hardware: Hardware) -> tuple[str, ...]:
    """The templates to choose from, ATen first.

    Wider than Inductor in two places, both of which it narrows only to save benchmarking: the TMA
    template counts although a torch config has to turn it on, and Triton's templates count even
    where K is so large that Inductor would try splits of K alone.
    """
    names = (ATEN, DECOMPOSE_K, *TRITON_TEMPLATES)
    return tuple(name for name in names if can_offer(name, problem, hardware))


def can_offer(template: str, problem: MMShape, hardware: Hardware) -> bool:
    """Whether a template can run this problem at all; False for one that has no rule here."""
    if template == ATEN:
        return True
    if problem.dtype not in TRITON_DTYPES or problem.out_dtype != problem.dtype:
        return False
    if template == DECOMPOSE_K:
        return hardware.kind == "cuda" and bool(k_splits(problem))
    if template in TMA_TEMPLATES:
        return problem.op not in BATCHED and has_tma(hardware) and tma_aligned(problem)
    return template in plain_templates(problem)


def plain_templates(problem: MMShape) -> tuple[str, str]:
    """Those a plain compile chooses from: ATen, and the one template no torch config turns on."""
    return ATEN, "triton::bmm" if problem.op in BATCHED else "triton::mm"


def has_tma(hardware: Hardware) -> bool:
    """Whether Inductor uses `mm_persistent_tma` on the chip: Hopper and later, except where its
    Blackwell template takes that place."""
    number = arch_number(hardware.arch)
    return hardware.kind == "cuda" and number >= 90 and number not in _DATACENTER_BLACKWELL


def arch_number(arch: str) -> int:
    """90 for `sm_90` and `sm_90a`; 0 for what is not NVIDIA's."""
    match = re.fullmatch(r"sm_(\d+)[a-z]?", arch)
    return int(match[1]) if match else 0


def tma_aligned(problem: MMShape) -> bool:
    """Whether a TMA kernel is right for a problem: its rows are aligned, and A has several.

    A single row Inductor (2.9 to 2.15) takes for a transposed A, and the kernel's result is wrong.
    """
    p = problem
    sizes = (p.M, p.N, p.K)
    return p.M > 1 and bool(rows_aligned(sizes, p.transpose_a, p.transpose_b, DTYPE_BYTES[p.dtype]))


def rows_aligned(sizes: Sequence[Any], transpose_a: Any, transpose_b: Any, item_bytes: Any) -> Any:
    """Whether both operands' rows, as they lie in memory, are multiples of 16 bytes; for one
    problem's M, N and K or for arrays of them."""
    m, n, k = sizes
    inner_a = k + transpose_a * (m - k)
    inner_b = n + transpose_b * (k - n)
    return (inner_a * item_bytes % TMA_BYTES == 0) & (inner_b * item_bytes % TMA_BYTES == 0)


def k_splits(problem: MMShape) -> tuple[int, ...]:
    """The numbers of parts Inductor's exhaustive search splits K into, in its order; none where
    it would not split."""
    least = DECOMPOSE_K_THRESHOLD * max(problem.M, problem.N)
    if problem.op != "mm" or least > problem.K:
        return ()
    return _splits(problem.K, problem.K // max(problem.M, problem.N))


@lru_cache(maxsize=256)
def _splits(k: int, most: int) -> tuple[int, ...]:
    low = np.arange(1, int(k**0.5) + 2)
    low = low[k % low == 0]
    divisors = np.unique(np.concatenate([low, k // low]))
    keep = (divisors >= 2) & (divisors <= min(most, _MOST_SPLITS))
    keep &= k // divisors >= _LEAST_K_PART
    divisors = divisors[keep]
    part = k // divisors
    power = (part & (part - 1)) == 0
    even = ~power & (part % 32 == 0)
    groups = (divisors[power], divisors[even], divisors[~power & ~even])
    return tuple(int(split) for group in groups for split in group)
