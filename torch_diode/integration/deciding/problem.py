"""Conversion of Inductor's kernel inputs to a problem."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Abstained
from torch_diode.types.problem import BATCHED, DTYPES, OPS, MMShape
from torch_diode.types.validation import MAX_SIZE

WITH_BIAS = frozenset({"addmm", "baddbmm"})


class UnsupportedProblemError(Abstained):
    """The inputs cannot be expressed as an `MMShape`, so no heuristic ranks them."""


def problem_of(op: str, inputs: Any) -> MMShape:
    """The problem of some `kernel_inputs`, with Inductor's hints for symbolic sizes."""
    if op not in OPS:
        raise UnsupportedProblemError(f"op {op} is none of {', '.join(OPS)}")
    if op in WITH_BIAS and inputs._scalars.get("beta", 1) == 0:
        # The bias must not be read then: it may be uninitialised, and templates add 0 times it.
        raise UnsupportedProblemError(f"{op} with a beta of 0")
    mat1, mat2 = inputs.mat1mat2()
    size1, size2 = torch_compat.hints(mat1.get_size()), torch_compat.hints(mat2.get_size())
    dims = 3 if op in BATCHED else 2
    if len(size1) != dims or len(size2) != dims:
        raise UnsupportedProblemError(f"{op} of {len(size1)}-D by {len(size2)}-D operands")
    if 0 in size1 + size2:
        raise UnsupportedProblemError(f"{op} with an empty operand")
    if max(size1 + size2) > MAX_SIZE:
        raise UnsupportedProblemError(f"{op} with a size beyond {MAX_SIZE}")
    dtype = _dtype(mat1.get_dtype())
    if mat2.get_dtype() != mat1.get_dtype():
        raise UnsupportedProblemError(f"{op} of {dtype} by {_dtype(mat2.get_dtype())}")
    return MMShape(
        op,
        M=size1[-2],
        N=size2[-1],
        K=size1[-1],
        B=size1[0] if op in BATCHED else 1,
        dtype=dtype,
        out_dtype=_dtype(inputs.out_dtype()) if hasattr(inputs, "out_dtype") else dtype,
        transpose_a=is_transposed(size1, torch_compat.hints(mat1.get_stride())),
        transpose_b=is_transposed(size2, torch_compat.hints(mat2.get_stride())),
        tf32=_uses_tf32(dtype, mat1.get_device().type),
        bias=_bias(inputs.nodes()[0], size1[-2]) if op in WITH_BIAS else "none",
    )


def _uses_tf32(dtype: str, device_type: str) -> bool:
    return dtype == "float32" and device_type != "cpu" and torch_compat.tf32_allowed()


def is_transposed(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """True for a column-major matrix; the batch stride does not matter.

    A vector is both: it counts as row-major, as an unpadded one is.
    """
    rows, columns = size[-2:]
    row_step, column_step = stride[-2:]
    if (column_step == 1 or columns == 1) and (row_step >= columns or rows == 1):
        return False
    if (row_step == 1 or rows == 1) and (column_step >= rows or columns == 1):
        return True
    raise UnsupportedProblemError(
        "operand with strides of neither a row-major nor a transposed matrix"
    )


@lru_cache(maxsize=64)
def _dtype(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise UnsupportedProblemError(f"dtype {name}")
    return name


def _bias(node: Any, rows: int) -> str:
    """A vector if all rows of the output add the same; a buffer without layout is a matrix."""
    size = torch_compat.hints(node.get_size())
    if len(size) < 2 or (size[-2] == 1 and rows != 1):
        return "vector"
    stride = node.maybe_get_stride()
    return "vector" if stride is not None and torch_compat.hints(stride)[-2] == 0 else "matrix"
