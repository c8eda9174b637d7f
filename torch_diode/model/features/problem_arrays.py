"""Problems as arrays, one per field: the input of the feature computations.

A dataset has thousands of problems, a compile one; both have the same fields, so that the same code
computes their features. For a compile the fields are plain numbers, with functions to match: for
one element numpy's overhead exceeds the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.names import PRECISIONS, TEMPLATES
from torch_diode.types.candidate import CPP_GEMM, DECOMPOSE_K, LIBRARIES
from torch_diode.types.problem import BIASES, DTYPE_BYTES, OPS, MMShape

if TYPE_CHECKING:
    from torch_diode.types.dataset import Dataset

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]
_USABLE = (*LIBRARIES, DECOMPOSE_K, CPP_GEMM, *TEMPLATES)
Values = Any
"""One value per problem: an array, or a number for a single problem."""


class ScalarFunctions:
    """Functions on plain numbers, under the names numpy has them for arrays."""

    log, log2, ceil, maximum, minimum = math.log, math.log2, math.ceil, max, min

    @staticmethod
    def take(values: Floats, index: int) -> float:
        """Value at an index."""
        return float(values[index])


@dataclass(frozen=True, eq=False)
class ProblemArrays:
    """Several problems. Sizes are floats: their products leave the range of integers."""

    xp: ClassVar[Any] = np
    """Array functions that apply to the fields."""

    B: Floats
    M: Floats
    N: Floats
    K: Floats
    low_bits: Floats
    """Largest power of two that divides M, N and K: a column each."""
    op: Codes
    precision: Codes
    item: Floats
    out_item: Floats
    transpose_a: Floats
    transpose_b: Floats
    bias: Codes
    threads: Floats
    """Threads on a CPU; 0 on a GPU."""

    def __len__(self) -> int:
        return len(self.M)

    @cached_property
    def sizes(self) -> Floats:
        """B, M, N and K, a row each."""
        return np.stack((self.B, self.M, self.N, self.K))

    @property
    def low(self) -> Values:
        """`low_bits` transposed: a row each for M, N and K."""
        return self.low_bits.T

    @cached_property
    def known(self) -> dict[Any, Any]:
        """Cache of values derived from these problems, such as the bounds on a hardware."""
        return {}

    def take(self, rows: npt.NDArray[Any]) -> ProblemArrays:
        """Select the problems at these positions, in this order."""
        return ProblemArrays(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @classmethod
    def concat(cls, parts: Sequence[ProblemArrays]) -> ProblemArrays:
        """Concatenate the problems of several parts."""
        return cls(
            **{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)}
        )

    @classmethod
    def of(cls, problem: MMShape, threads: int = 0) -> ProblemArrays:
        """Arrays of one element for one problem."""
        one = OneProblem(problem, threads)
        names = [f.name for f in fields(cls)]
        values: dict[str, Any] = {name: np.array([getattr(one, name)]) for name in names}
        codes = ("op", "precision", "bias")
        return cls(**{n: v if n in codes else v.astype(np.float32) for n, v in values.items()})

    @classmethod
    def of_dataset(cls, dataset: Dataset) -> ProblemArrays:
        """Arrays of a dataset's problems, in the order of `dataset.problems`."""
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
            threads=dataset.values("threads")[first].astype(np.float32),
        )


class OneProblem:
    """One problem with the fields of `ProblemArrays` as plain numbers, which broadcast over
    candidates as arrays of one element would."""

    xp: ClassVar[Any] = ScalarFunctions

    def __init__(self, problem: MMShape, threads: int = 0) -> None:
        p = problem
        self.threads = float(threads)
        self.sizes = np.array([[p.B], [p.M], [p.N], [p.K]], np.float32)
        self.B, self.M, self.N, self.K = self.sizes[:, 0].tolist()
        self.low_bits = tuple([float(size & -size) for size in (p.M, p.N, p.K)])
        self.op, self.bias = OPS.index(p.op), BIASES.index(p.bias)
        self.precision = precision_code(p)
        self.item, self.out_item = float(DTYPE_BYTES[p.dtype]), float(DTYPE_BYTES[p.out_dtype])
        self.transpose_a, self.transpose_b = float(p.transpose_a), float(p.transpose_b)
        self.low = self.low_bits
        self.known: dict[Any, Any] = {}


Problems = ProblemArrays | OneProblem


def precision_code(problem: MMShape) -> int:
    """Index of a problem's precision in `PRECISIONS`."""
    name = problem.precision
    return PRECISIONS.index(name) if name in PRECISIONS else len(PRECISIONS)


def one_row_per_problem(rows: Sequence[Values]) -> Floats:
    """Transpose rows with one value per problem, or the numbers of one problem."""
    return np.ascontiguousarray(np.array(rows, np.float32).reshape(len(rows), -1).T)


def select(condition: Values, then: Values, otherwise: Values) -> Values:
    """Take `then` where `condition` is 1, `otherwise` where it is 0."""
    return condition * then + (1 - condition) * otherwise


def usable_rows(dataset: Dataset) -> npt.NDArray[np.int64]:
    """Rows that have a time and are of a library, a split of K or a known template."""
    time = dataset.values("time_us")
    template, names = dataset.codes("template")
    known = [number for number, name in enumerate(names) if name in _USABLE]
    return np.flatnonzero(np.isfinite(time) & (time > 0) & np.isin(template, known))


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
