"""The four ops as functions and inputs to lower, static and dynamic."""

from collections.abc import Callable
from typing import Any

import torch

from torch_diode.integration.capture.fake_gpu import Dynamic, Input
from torch_diode.types.candidate import TritonGEMMConfig

B, M, N, K = 4, 384, 512, 640
CONFIG = TritonGEMMConfig(64, 64, 32, group_m=8, num_stages=3, num_warps=4)
BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}
MAX_AUTOTUNE = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}

Shape = tuple[int | str, ...]
OPS: dict[str, tuple[Callable[..., Any], tuple[Shape, ...]]] = {
    "mm": (torch.mm, (("M", K), (K, N))),
    "addmm": (torch.addmm, ((N,), ("M", K), (K, N))),
    "bmm": (torch.bmm, ((B, "M", K), (B, K, N))),
    "baddbmm": (torch.baddbmm, ((B, "M", N), (B, "M", K), (B, K, N))),
}


def inputs(op: str, dtype: torch.dtype = torch.bfloat16, dynamic: bool = False) -> list[Input]:
    """One input for each operand of an op."""
    rows = Dynamic("s0", M) if dynamic else M
    return [
        Input(tuple(rows if size == "M" else int(size) for size in shape), dtype)
        for shape in OPS[op][1]
    ]
