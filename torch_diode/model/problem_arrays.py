"""Problems as arrays, one array a field: what the features are computed from.

A dataset gives thousands of problems, a compile gives one; both become the same arrays, and so the
same code computes the same features for either.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import BIASES, DTYPE_BYTES, OPS, MMShape

PRECISIONS = ("bfloat16", "float16", "float32", "tf32")
"""What products are computed in; anything else is number `len(PRECISIONS)`."""

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ProblemArrays:
    """Some problems. Sizes are floats: products of them leave the range of integers."""

    B: Floats
    M: Floats
    N: Floats
    K: Floats
    low_bits: npt.NDArray[np.int64]
    """The largest power of two that divides each of M, N and K: a column for each."""
    op: Codes
    precision: Codes
    item: Floats
    out_item: Floats
    transpose_a: Floats
    transpose_b: Floats
    bias: Codes

    def __len__(self) -> int:
        return len(self.M)

    def take(self, rows: npt.NDArray[Any]) -> ProblemArrays:
        """The problems at these positions, in this order."""
        return ProblemArrays(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @classmethod
    def of(cls, problem: MMShape) -> ProblemArrays:
        """One problem, in arrays of one element, which broadcast over its candidates."""
        precision = "tf32" if problem.tf32 else problem.dtype
        known = precision in PRECISIONS
        sizes = (problem.M, problem.N, problem.K)
        return cls(
            B=_floats(problem.B),
            M=_floats(problem.M),
            N=_floats(problem.N),
            K=_floats(problem.K),
            low_bits=np.array([[size & -size for size in sizes]], np.int64),
            op=np.array([OPS.index(problem.op)]),
            precision=np.array([PRECISIONS.index(precision) if known else len(PRECISIONS)]),
            item=_floats(DTYPE_BYTES[problem.dtype]),
            out_item=_floats(DTYPE_BYTES[problem.out_dtype]),
            transpose_a=_floats(problem.transpose_a),
            transpose_b=_floats(problem.transpose_b),
            bias=np.array([BIASES.index(problem.bias)]),
        )

    @classmethod
    def of_dataset(cls, dataset: Dataset) -> ProblemArrays:
        """A dataset's problems, one entry for each, in the order of `dataset.problems`."""
        first = dataset.problems.first
        sizes = {name: dataset.values(name)[first].astype(np.int64) for name in "BMNK"}
        dtype = _texts(dataset, "dtype", first)
        tf32 = dataset.values("tf32")[first].astype(bool)
        precision = np.where(tf32, "tf32", dtype)
        return cls(
            **{name: size.astype(np.float32) for name, size in sizes.items()},
            low_bits=np.stack([sizes[name] & -sizes[name] for name in "MNK"], axis=1),
            op=_positions(_texts(dataset, "op", first), OPS),
            precision=_positions(precision, PRECISIONS),
            item=_bytes(dtype),
            out_item=_bytes(_texts(dataset, "out_dtype", first)),
            transpose_a=dataset.values("transpose_a")[first].astype(np.float32),
            transpose_b=dataset.values("transpose_b")[first].astype(np.float32),
            bias=_positions(_texts(dataset, "bias", first), BIASES),
        )


def _floats(value: float) -> Floats:
    return np.array([value], np.float32)


def _texts(dataset: Dataset, name: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.str_]:
    codes, texts = dataset.codes(name)
    return np.array(texts, dtype=np.str_)[codes[rows]]


def _positions(values: npt.NDArray[np.str_], known: tuple[str, ...]) -> Codes:
    codes = np.full(len(values), len(known), np.int64)
    for number, name in enumerate(known):
        codes[values == name] = number
    return codes


def _bytes(dtypes: npt.NDArray[np.str_]) -> Floats:
    return np.array([DTYPE_BYTES[str(name)] for name in dtypes], np.float32)
