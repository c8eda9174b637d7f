"""The options that shapes are drawn by, shared by the commands that draw them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
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

OPERATIONS = ("mm", "addmm", "bmm")
DTYPE = {"cpu": "float32"}
"""What is drawn where no dtype is given: bfloat16 but for these devices, where it may not run."""
_LAW = LogNormal()
_EVENLY = LogUniform()
_MOST_BYTES = 8 << 30


@dataclass(frozen=True)
class Drawing:
    """What to draw. Checked when made, so that a wrong word costs nothing."""

    num_shapes: int
    operations: tuple[str, ...] = OPERATIONS
    dtypes: tuple[str, ...] = ("bfloat16",)
    layouts: tuple[str, ...] = ("nn",)
    log_normal: bool = False
    m: tuple[float, float] = _LAW.m
    n: tuple[float, float] = _LAW.n
    k: tuple[float, float] = _LAW.k
    min_size: int | None = None
    max_size: int | None = None
    power_of_two: bool = False
    square: bool = False
    even: bool = False
    tf32: bool = False

    def __post_init__(self) -> None:
        for op in self.operations:
            validation.one_of("collect", "operations", op, OPS)
        for dtype in self.dtypes:
            validation.one_of("collect", "dtypes", dtype, TRITON_DTYPES)
        self.source(0)

    def source(self, memory_bytes: int) -> ShapeSource:
        """Where these shapes come from, on a chip with that much memory (0: not known)."""
        evenly = LogUniform(
            _EVENLY.low if self.min_size is None else max(self.min_size, 1),
            _EVENLY.high if self.max_size is None else max(self.max_size, 1),
        )
        low, high = (1, ShapeSource.high) if self.log_normal else (evenly.low, evenly.high)
        return ShapeSource(
            LogNormal(self.m, self.n, self.k, rounded=True) if self.log_normal else evenly,
            self.operations,
            self.dtypes,
            self.layouts,
            low=low if self.min_size is None else self.min_size,
            high=high if self.max_size is None else self.max_size,
            multiple=0 if self.power_of_two else 1,
            square=self.square,
            even=self.even,
            tf32=self.tf32,
            most_bytes=min(_MOST_BYTES, memory_bytes // 4) if memory_bytes else _MOST_BYTES,
        )

    def problems(
        self, hardware: Hardware, seed: int | str, taken: AbstractSet[Sizes] = frozenset()
    ) -> list[MMShape]:
        """The problems drawn, none of a size that is taken."""
        source = self.source(hardware.memory_bytes)
        if not taken:
            return list(source.draw(self.num_shapes, seed))
        # At worst everything that is taken is drawn first.
        most = self.num_shapes + len(taken) * len(self.dtypes) * len(self.layouts)
        fresh = _untaken(source.draw(most, seed), taken)
        found = list(itertools.islice(fresh, self.num_shapes))
        if len(found) < self.num_shapes:
            raise EmptySelectionError(
                f"shapes: got {len(found)} problems that no other dataset has; expected "
                f"{self.num_shapes}; widen --min-size and --max-size or ask for fewer"
            )
        return found

    def options(self) -> dict[str, Any]:
        """As a rerun is compared with."""
        return {name.replace("_", "-"): value for name, value in asdict(self).items()}


def default_dtypes(device: str | None) -> tuple[str, ...]:
    """The dtypes drawn on a device where none is asked for."""
    return (DTYPE.get(device or "", "bfloat16"),)


def _untaken(drawn: Iterator[MMShape], taken: AbstractSet[Sizes]) -> Iterator[MMShape]:
    """Those that are free, until the law has no more to give."""
    try:
        yield from (problem for problem in drawn if sizes_of(problem) not in taken)
    except InvalidValueError:
        return
