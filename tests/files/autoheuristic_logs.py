"""Small logs in the form that PyTorch's AutoHeuristic writes."""

from __future__ import annotations

import json
from collections.abc import Iterable

MM_NUMBERS = ("m", "k", "n", "mat1_stride_0", "mat1_stride_1", "mat2_stride_0", "mat2_stride_1")
MM_TEXTS = ("mat1_dtype", "mat2_dtype", "mat1_iscontig", "mat2_iscontig", "using_tf32")
CONFIG = "type=triton_BLOCK-M={}_BLOCK-K={}_BLOCK-N={}_numstages={}_numwarps={}"
LINEAR = "512,256,1024,torch.float16,torch.float16,256,1,1,256,True,False,not_float_32"
"""M, K, N, dtypes, strides of A and of the transposed B."""
FULL = "64,32,16,torch.float32,torch.float32,32,1,16,1,True,True,False"


def log(lines: Iterable[str], capability: tuple[int, int] = (8, 0), name: str = "mm") -> str:
    """The text of a log of mm with these lines."""
    order = ("m", "k", "n", *MM_TEXTS[:2], *MM_NUMBERS[3:], *MM_TEXTS[2:])
    head = {
        "shared_memory": 166912,
        "device_capa": list(capability),
        "name": name,
        "numerical_features": list(MM_NUMBERS),
        "categorical_features": list(MM_TEXTS),
    }
    return "\n".join([json.dumps(head), ",".join([*order, "choice", "feedback"]), *lines, ""])


def timing(problem: str, choice: str, milliseconds: float) -> str:
    """A line of a log."""
    return f"{problem},{choice},{milliseconds}"
