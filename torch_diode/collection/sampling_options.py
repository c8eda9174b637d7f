"""Sampling options: the distribution and the limits that problems are drawn by."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.collection.shape_sampling import (
    LogNormal,
    LogUniform,
    ShapeSource,
    Sizes,
    sizes_of,
)
from torch_diode.types import validation
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import OPS, MMShape

_LOG_NORMAL = LogNormal()
_LOG_UNIFORM = LogUniform()
_MAX_BYTES = 8 << 30
_MAX_LOG = 30.0
"""Largest mean or deviation of a size's logarithm: any matrix, and within what a float holds."""


@dataclass(frozen=True)
class ShapeSampling:
    """Problems to draw at random: how many, of what kind, and by which distribution.

    Sizes are log-uniform within the limits, or log-normal (`m`, `n` and `k` are the mean and the
    standard deviation of the natural logarithm). Options are checked on construction.
    """

    num_shapes: int = 100
    operations: tuple[str, ...] = ("mm", "addmm", "bmm")
    dtypes: tuple[str, ...] = ()
    """Empty: bfloat16 on a GPU, float32 on a CPU, where bfloat16 may not run."""
    layouts: tuple[str, ...] = ("nn",)
    log_normal: bool = False
    m: tuple[float, float] = _LOG_NORMAL.m
    n: tuple[float, float] = _LOG_NORMAL.n
    k: tuple[float, float] = _LOG_NORMAL.k
    min_size: int | None = None
    max_size: int | None = None
    power_of_two: bool = False
    square: bool = False
    even: bool = False
    tf32: bool = False

    def __post_init__(self) -> None:
        validation.whole_number("collect", "num-shapes", self.num_shapes, low=1)
        for size in "mnk":
            for name, value, low in zip(
                ("mean", "std"), getattr(self, size), (-_MAX_LOG, 0.0), strict=True
            ):
                if not low <= value <= _MAX_LOG:
                    expected = f"{low:g} to {_MAX_LOG:g}"
                    validation.refuse("collect", f"log-normal-{size}-{name}", value, expected)
        for op in self.operations:
            validation.one_of("collect", "operations", op, OPS)
        for dtype in self.dtypes:
            validation.one_of("collect", "dtypes", dtype, TRITON_DTYPES)
        self.source()

    def source(self, memory_bytes: int = 0) -> ShapeSource:
        """The source of these problems on a device with so much memory (0: unknown)."""
        uniform = LogUniform(
            _LOG_UNIFORM.low if self.min_size is None else max(self.min_size, 1),
            _LOG_UNIFORM.high if self.max_size is None else max(self.max_size, 1),
        )
        low, high = (1, ShapeSource.high) if self.log_normal else (uniform.low, uniform.high)
        return ShapeSource(
            LogNormal(self.m, self.n, self.k, rounded=True) if self.log_normal else uniform,
            self.operations,
            self.dtypes,
            self.layouts,
            low=low if self.min_size is None else self.min_size,
            high=high if self.max_size is None else self.max_size,
            multiple=0 if self.power_of_two else 1,
            square=self.square,
            even=self.even,
            tf32=self.tf32,
            most_bytes=min(_MAX_BYTES, memory_bytes // 4) if memory_bytes else _MAX_BYTES,
        )

    def with_dtypes(self, hardware: Hardware) -> ShapeSampling:
        """The same with the hardware's default dtype where none was given."""
        default = "float32" if hardware.kind == "cpu" else "bfloat16"
        return replace(self, dtypes=self.dtypes or (default,))

    def problems(
        self, hardware: Hardware, seed: int | str, taken: AbstractSet[Sizes] = frozenset()
    ) -> list[MMShape]:
        """Draw the problems, none with sizes in `taken`; the same seed draws the same ones."""
        sampling = self.with_dtypes(hardware)
        # Each library of a CPU has copies of the weight.
        share = 3 if hardware.kind == "cpu" else 1
        source = sampling.source(hardware.memory_bytes // share)
        if not taken:
            return list(source.draw(self.num_shapes, seed))
        # At worst every taken size is drawn first.
        most = self.num_shapes + len(taken) * len(sampling.dtypes) * len(self.layouts)
        fresh = _untaken(source.draw(most, seed), taken)
        problems = list(itertools.islice(fresh, self.num_shapes))
        if len(problems) < self.num_shapes:
            raise EmptySelectionError(
                f"shapes: got {len(problems)} problems that no other dataset has; expected "
                f"{self.num_shapes}; widen --min-size and --max-size or ask for fewer"
            )
        return problems

    def settings(self) -> dict[str, Any]:
        """The options by their command-line names: a rerun must have the same."""
        return {name.replace("_", "-"): value for name, value in asdict(self).items()}


def _untaken(drawn: Iterator[MMShape], taken: AbstractSet[Sizes]) -> Iterator[MMShape]:
    """Those not taken, until the source has no more distinct problems."""
    try:
        yield from (problem for problem in drawn if sizes_of(problem) not in taken)
    except InvalidValueError:
        return
