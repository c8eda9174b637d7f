"""Problems as arrays, one array a field: what the features are computed from.

A dataset gives thousands of problems, a compile gives one; both become the same fields, and so the
same code computes the same features for either. In a compile the fields are plain numbers, with
functions to match, since numpy takes longer to start on an array of one than to go over a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from torch_diode.types.problem import BIASES, DTYPE_BYTES, OPS, MMShape

if TYPE_CHECKING:
    from torch_diode.types.dataset import Dataset

PRECISIONS = ("bfloat16", "float16", "float32", "tf32")
"""What products are computed in; anything else is number `len(PRECISIONS)`."""

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]
Values = Any
"""One value a problem: an array, or a number where there is one."""


class Numbers:
    """What the features use of numpy, of plain numbers."""

    log, log2, ceil, maximum, minimum = math.log, math.log2, math.ceil, max, min

    @staticmethod
    def take(values: Floats, place: int) -> float:
        """One of the values."""
        return float(values[place])


@dataclass(frozen=True, eq=False)
class ProblemArrays:
    """Some problems. Sizes are floats: products of them leave the range of integers."""

    xp: ClassVar[Any] = np
    """The functions that go with its fields."""

    B: Floats
    M: Floats
    N: Floats
    K: Floats
    low_bits: Floats
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
        return np.stack((self.B, self.M, self.N, self.K))

    @property
    def low(self) -> Values:
        """`low_bits`, a row for each of M, N and K."""
        return self.low_bits.T

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
        """One problem, in arrays of one element."""
        one = OneProblem(problem)
        names = [f.name for f in fields(cls)]
        found: dict[str, Any] = {name: np.array([getattr(one, name)]) for name in names}
        codes = ("op", "precision", "bias")
        return cls(**{n: v if n in codes else v.astype(np.float32) for n, v in found.items()})

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
            low_bits=np.array([sizes[name] & -sizes[name] for name in "MNK"], np.float32).T,
            op=_positions(_texts(dataset, "op", first), OPS),
            precision=_positions(precision, PRECISIONS),
            item=_bytes(dtype),
            out_item=_bytes(_texts(dataset, "out_dtype", first)),
            transpose_a=dataset.values("transpose_a")[first].astype(np.float32),
            transpose_b=dataset.values("transpose_b")[first].astype(np.float32),
            bias=_positions(_texts(dataset, "bias", first), BIASES),
        )


class OneProblem:
    """One problem, with what `ProblemArrays` has in plain numbers; they broadcast over candidates
    as arrays of one element would."""

    xp: ClassVar[Any] = Numbers

    def __init__(self, problem: MMShape) -> None:
        p = problem
        self.sizes = np.array([[p.B], [p.M], [p.N], [p.K]], np.float32)
        self.B, self.M, self.N, self.K = self.sizes[:, 0].tolist()
        self.low_bits = tuple([float(size & -size) for size in (p.M, p.N, p.K)])
        self.op, self.bias = OPS.index(p.op), BIASES.index(p.bias)
        self.precision = precision_of(p)
        self.item, self.out_item = float(DTYPE_BYTES[p.dtype]), float(DTYPE_BYTES[p.out_dtype])
        self.transpose_a, self.transpose_b = float(p.transpose_a), float(p.transpose_b)
        self.low = self.low_bits
        self.known: dict[Any, Any] = {}


Problems = ProblemArrays | OneProblem


def precision_of(problem: MMShape) -> int:
    """The number of what its products are computed in."""
    name = problem.precision
    return PRECISIONS.index(name) if name in PRECISIONS else len(PRECISIONS)


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
