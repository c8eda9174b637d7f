"""Eligibility of templates for a problem, and the splits of K.

The conditions are Inductor's, from `torch/_inductor/utils.py` (`use_triton_template`,
`can_use_tma`, `use_decompose_k_choice`, `get_k_splits`), for tensors without padding or offset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from torch_diode.types.candidate import ATEN, DECOMPOSE_K, TMA_TEMPLATES, TRITON_TEMPLATES
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, DTYPE_BYTES, MMShape

TRITON_DTYPES = ("bfloat16", "float16", "float32")
DECOMPOSE_K_THRESHOLD = 32
"""Inductor considers splitting K if it is at least this many times M and N."""

TMA_BYTES = 16
"""Alignment of the rows of an operand read through a TMA descriptor."""
_LEAST_K_PART = 128
_MOST_SPLITS = 65536
_DATACENTER_BLACKWELL = (100, 103)


def offered_templates(problem: MMShape, hardware: Hardware) -> tuple[str, ...]:
    """Templates to choose from, ATen first.

    More than Inductor offers in two cases, which it restricts only to save benchmarking: the TMA
    template is included although a torch config has to enable it, and Triton templates even if K is
    so large that Inductor would only try splits of K.
    """
    names = (ATEN, DECOMPOSE_K, *TRITON_TEMPLATES)
    return tuple(name for name in names if can_offer(name, problem, hardware))


def can_offer(template: str, problem: MMShape, hardware: Hardware) -> bool:
    """True if a template can run a problem; False for one that has no rule here."""
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
    """Templates of a compile without max-autotune: ATen and the plain Triton template."""
    return ATEN, "triton::bmm" if problem.op in BATCHED else "triton::mm"


def has_tma(hardware: Hardware) -> bool:
    """True if Inductor uses `mm_persistent_tma` on the chip: Hopper and later, except datacenter
    Blackwell, which has a template of its own."""
    number = arch_number(hardware.arch)
    return hardware.kind == "cuda" and number >= 90 and number not in _DATACENTER_BLACKWELL


def arch_number(arch: str) -> int:
    """Number of an architecture: 90 for `sm_90` and `sm_90a`, 0 if it is not NVIDIA's."""
    match = re.fullmatch(r"sm_(\d+)[a-z]?", arch)
    return int(match[1]) if match else 0


def tma_aligned(problem: MMShape) -> bool:
    """True if a TMA kernel is correct for a problem: rows are aligned, and A has more than one.

    Inductor (2.9 to 2.15) treats a single row as a transposed A, and the result is wrong.
    """
    p = problem
    sizes = (p.M, p.N, p.K)
    return p.M > 1 and bool(rows_aligned(sizes, p.transpose_a, p.transpose_b, DTYPE_BYTES[p.dtype]))


def rows_aligned(sizes: Sequence[Any], transpose_a: Any, transpose_b: Any, item_bytes: Any) -> Any:
    """True if the rows of both operands in memory are multiples of 16 bytes; for the M, N and K of
    one problem or arrays of them."""
    m, n, k = sizes
    inner_a = k + transpose_a * (m - k)
    inner_b = n + transpose_b * (k - n)
    return (inner_a * item_bytes % TMA_BYTES == 0) & (inner_b * item_bytes % TMA_BYTES == 0)


def k_splits(problem: MMShape) -> tuple[int, ...]:
    """Numbers of parts Inductor's exhaustive search splits K into, in its order; empty if it would
    not split."""
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
