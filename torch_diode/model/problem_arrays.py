"""Problems as arrays, one array a field: what the features are computed from.

A dataset gives thousands of problems, a compile gives one; both become the same arrays, and so the
same code computes the same features for either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
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

    @cached_property
    def sizes(self) -> Floats:
        """B, M, N and K, a row for each."""
        rows = np.concatenate((self.B, self.M, self.N, self.K))
        return rows.reshape(4, len(self))

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What was worked out of these problems already, by what else it depends on."""
        return {}

    def take(self, rows: npt.NDArray[Any]) -> ProblemArrays:
        """The problems at these positions, in this order."""
        return ProblemArrays(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @classmethod
    def joined(cls, parts: Sequence[ProblemArrays]) -> ProblemArrays:
        """The problems of all parts, one part after the other."""
        return cls(
            **{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)}
        )

    @classmethod
    def of(cls, problem: MMShape) -> ProblemArrays:
        """One problem, in arrays of one element, which broadcast over its candidates."""
        p = problem
        precision = "tf32" if p.tf32 else p.dtype
        known = precision in PRECISIONS
        # Few arrays, cut up: making one takes longer than anything done with it here.
        floats = np.array(
            [
                *(p.B, p.M, p.N, p.K),
                *(DTYPE_BYTES[p.dtype], DTYPE_BYTES[p.out_dtype]),
                *(p.transpose_a, p.transpose_b),
            ],
            np.float32,
        ).reshape(8, 1)
        codes = np.array(
            [
                OPS.index(p.op),
                PRECISIONS.index(precision) if known else len(PRECISIONS),
                BIASES.index(p.bias),
                *(p.M & -p.M, p.N & -p.N, p.K & -p.K),
            ]
        ).reshape(6, 1)
        b, m, n, k, item, out_item, transpose_a, transpose_b = floats
        found = cls(
            B=b,
            M=m,
            N=n,
            K=k,
            low_bits=codes[3:].T,
            op=codes[0],
            precision=codes[1],
            item=item,
            out_item=out_item,
            transpose_a=transpose_a,
            transpose_b=transpose_b,
            bias=codes[2],
        )
        found.__dict__["sizes"] = floats[:4]
        return found

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
