"""Flex attention's kernels for a GPU that is not here: functions to lower, and the compiled
kernels' resources.

Inductor lowers flex attention for CUDA only in CUDA builds of torch, from 2.10 on; they install
without a GPU. The masks are causal, with blocks that need no mask beside those that do, as
users' are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast
from unittest import mock

import torch
import triton
from torch._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
from torch._inductor.codecache import PyCodeCache
from torch.nn.attention.flex_attention import BlockMask

from torch_diode.integration.capture.fake_gpu import Input
from torch_diode.types.candidate import KernelConfig

MASK_BLOCK = 128
"""Rows and columns of a mask's block: torch's default."""
FEW_QUERIES = 16
_KERNEL = re.compile(r"(triton_tem_\w+) = async_compile\.triton\('\w+', '''(.*?)'''", re.DOTALL)
_SCALE = 0.125
_DEFAULT_OPTIONS = {
    "PRESCALE_QK": False,
    "ROWS_GUARANTEED_SAFE": False,
    "BLOCKS_ARE_CONTIGUOUS": False,
    "WRITE_DQ": True,
    "OUTPUT_LOGSUMEXP": True,
    "OUTPUT_MAX": False,
}
"""What torch's `flex_attention` adds to a call's options."""

Attention = Callable[..., Any]


def lowered_here() -> str:
    """Empty if this build of torch lowers flex attention for CUDA, else the reason."""
    if not torch.backends.cuda.is_built():
        return "flex attention is lowered for CUDA by CUDA builds of torch only"
    return "2.9 lowers no flex attention here" if torch.__version__.startswith("2.9.") else ""


def options_of(config: KernelConfig) -> dict[str, Any]:
    """A config as the `kernel_options` of a call."""
    blocks = {name.upper(): size for name, size in config.blocks}
    return {**blocks, "num_stages": config.num_stages, "num_warps": config.num_warps}


def attention(kind: str, options: dict[str, Any] | None = None, biased: bool = False) -> Attention:
    """A function that attends: `forward`, `backward` or `decode`, with these `kernel_options`; a
    biased forward adds a bias by head, query and key to the scores, the last input."""
    backend = "TRITON_DECODE" if kind == "decode" else "TRITON"
    given = {**_DEFAULT_OPTIONS, "BACKEND": backend, **(options or {})}
    if biased:
        return lambda q, k, v, number, index, bias: flex_attention(
            *(q, k, v, _biased_score, _mask(q, k, number, index), _SCALE, given, (bias,))
        )[0]
    if kind != "backward":
        return lambda q, k, v, number, index: flex_attention(
            *(q, k, v, _score, _mask(q, k, number, index), _SCALE, given)
        )[0]

    def backward(
        q: Any, k: Any, v: Any, number: Any, index: Any, lse: Any, out: Any, grad: Any
    ) -> Any:
        mask = _mask(q, k, number, index)
        graphs = (_score, _score_backward)
        operator: Any = flex_attention_backward
        return operator(*(q, k, v, out, lse, grad, lse, *graphs, mask, _SCALE, given))[:3]

    return backward


def attention_inputs(
    kind: str,
    shape: tuple[int, int, int, int],
    dtype: torch.dtype,
    value_dim: int | None = None,
) -> list[Input]:
    """The inputs of that function, for batch, heads, length and head dimension, and that of the
    values if it is another."""
    batch, heads, length, head_dim = shape
    queries = min(length, FEW_QUERIES) if kind == "decode" else length
    q, k, v, out = (
        Input((batch, heads, rows, size), dtype)
        for rows, size in (
            (queries, head_dim),
            (length, head_dim),
            (length, value_dim or head_dim),
            (queries, value_dim or head_dim),
        )
    )
    rows, columns = -(-queries // MASK_BLOCK), -(-length // MASK_BLOCK)
    number = Input((batch, 1, rows), torch.int32)
    index = Input((batch, 1, rows, columns), torch.int32)
    lse = Input((batch, heads, queries), torch.float32)
    more = [lse, out, out] if kind == "backward" else []
    return [q, k, v, number, index, *more]


def compiled_attention(source: str) -> Any:
    """The compiled kernel in the code of a lowered attention; compiler errors are raised."""
    match = _KERNEL.search(source)
    assert match is not None, "no template in the generated code"
    tuner: Any = getattr(PyCodeCache.load(match[2]), match[1])
    compiled: list[Any] = []

    def compile_and_keep(*args: Any, **kwargs: Any) -> Any:
        compiled.append(compile_kernel(*args, **kwargs))
        return compiled[-1]

    # What Inductor makes of it, to launch it, depends on the release.
    compile_kernel = triton.compile
    with mock.patch.object(triton, "compile", compile_and_keep):
        tuner._precompile_config(tuner.configs[0])
    return compiled[-1]


def _score(score: Any, *_: Any) -> Any:
    return score


def _biased_score(score: Any, b: Any, h: Any, m: Any, n: Any, bias: Any) -> Any:
    return score + bias[h, m, n]


def _score_backward(score: Any, b: Any, h: Any, m: Any, n: Any, grad: Any) -> list[Any]:
    return [grad, None, None, None, None]


def _causal(b: Any, h: Any, query: Any, key: Any) -> Any:
    return query >= key


def _mask(q: Any, k: Any, number: Any, index: Any) -> tuple[Any, ...]:
    mask = BlockMask.from_kv_blocks(
        *(number, index, number, index),
        BLOCK_SIZE=MASK_BLOCK,
        mask_mod=_causal,
        seq_lengths=(q.shape[-2], k.shape[-2]),
        compute_q_blocks=False,
    )
    # Computing these would run operators, and only their shapes matter here.
    mask.q_num_blocks = mask.full_q_num_blocks = number
    mask.q_indices = mask.full_q_indices = index
    return cast("tuple[Any, ...]", mask.as_tuple())
