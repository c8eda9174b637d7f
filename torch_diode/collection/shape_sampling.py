"""Random problems: distributions of sizes, and limits on them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from torch_diode.types import validation
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import BATCHED, MMShape

_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_STEPS_OF_REAL_SIZES = (
    (14, 4, 7, 7, 6, 4, 6, 6, 45),
    (4, 1, 1, 3, 2, 2, 9, 12, 67),
    (3, 1, 1, 2, 1, 2, 8, 11, 73),
)
"""Percentage of the M, N and K of the shipped real-model shapes whose largest divisor is each."""

Sizes = tuple[str, int, int, int, int]


def sizes_of(problem: MMShape) -> Sizes:
    """Op, B, M, N and K: training and validation problems never share all five."""
    return (problem.op, problem.B, problem.M, problem.N, problem.K)


@dataclass(frozen=True)
class LogNormal:
    """Sizes whose natural logarithm is normal; the defaults are fitted to real workloads.

    Half of such sizes are odd, while most real ones are multiples of 64, which decides the kernels
    that can run: `rounded` makes them multiples as often as real ones are.
    """

    m: tuple[float, float] = (6.5725, 2.5562)
    n: tuple[float, float] = (5.9139, 1.6697)
    k: tuple[float, float] = (6.2049, 2.1647)
    rounded: bool = False

    def sizes(self, source: random.Random) -> tuple[int, int, int]:
        """One M, N and K."""
        sizes = [round(source.lognormvariate(*law)) for law in (self.m, self.n, self.k)]
        if self.rounded:
            for i, shares in enumerate(_STEPS_OF_REAL_SIZES):
                sizes[i] = _rounded(sizes[i], source.choices(_STEPS, shares)[0])
        m, n, k = sizes
        return m, n, k


def _rounded(size: int, step: int) -> int:
    """Round to a multiple of `step`, or of a smaller power of two for small sizes."""
    step = min(step, 1 << max(size.bit_length() - 2, 0))
    return max(round(size / step), 1) * step


@dataclass(frozen=True)
class LogUniform:
    """Sizes distributed evenly over the orders of magnitude between two limits."""

    low: int = 16
    high: int = 8192

    def sizes(self, source: random.Random) -> tuple[int, int, int]:
        """One M, N and K."""
        span = (math.log(self.low), math.log(self.high))
        m, n, k = (round(math.exp(source.uniform(*span))) for _ in range(3))
        return m, n, k


@dataclass(frozen=True)
class ShapeSource:
    """Distinct random problems within limits.

    `multiple` rounds sizes to a multiple (1 leaves them, 0 takes the next power of two);
    `square` uses one size for all three, `even` rounds odd sizes up. Results outside the limits are
    replaced by the nearest size within them.
    """

    law: LogNormal | LogUniform
    ops: Sequence[str] = ("mm",)
    dtypes: Sequence[str] = ("bfloat16",)
    layouts: Sequence[str] = ("nn",)
    low: int = 1
    high: int = 65536
    multiple: int = 1
    square: bool = False
    even: bool = False
    tf32: bool = False
    most_bytes: int = 8 << 30

    def __post_init__(self) -> None:
        validation.whole_number("shapes", "min-size", self.low, low=1)
        validation.whole_number("shapes", "max-size", self.high, low=self.low)
        first, last = self._ends
        if first > last:
            raise InvalidValueError(
                f"shapes: got sizes from {self.low} to {self.high}; expected {self._kind} among "
                "them; widen --min-size and --max-size"
            )
        for layout in self.layouts:
            validation.one_of("shapes", "layout", layout, ("nn", "nt", "tn", "tt"))

    def draw(self, count: int, seed: int | str) -> Iterator[MMShape]:
        """`count` distinct problems; the same seed gives the same ones."""
        source = random.Random(seed)
        seen: set[MMShape] = set()
        for _ in range(1000 * count):
            if len(seen) == count:
                return
            problem = self._one(source)
            if problem not in seen and problem.bytes_moved <= self.most_bytes:
                seen.add(problem)
                yield problem
        if len(seen) < count:
            raise InvalidValueError(
                f"shapes: got {len(seen)} distinct problems within the limits; expected {count}; "
                "widen --min-size and --max-size or request fewer"
            )

    def _one(self, source: random.Random) -> MMShape:
        sizes = [self._fitted(size) for size in self.law.sizes(source)]
        if self.square:
            sizes = [sizes[0]] * 3
        op, dtype = source.choice(list(self.ops)), source.choice(list(self.dtypes))
        layout = source.choice(list(self.layouts))
        batch = 2 ** source.randint(1, 7) if op in BATCHED else 1
        m, n, k = sizes
        return MMShape(
            op,
            m,
            n,
            k,
            B=batch,
            dtype=dtype,
            transpose_a=layout[0] == "t",
            transpose_b=layout[1] == "t",
            tf32=self.tf32 and dtype == "float32",
        )

    @property
    def _step(self) -> int:
        return math.lcm(self.multiple, 2 if self.even else 1)

    @property
    def _kind(self) -> str:
        if self.multiple == 0:
            return "a power of two above 1" if self.even else "a power of two"
        return "an even number" if self._step == 2 else f"a multiple of {self._step}"

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """Smallest and largest size of the requested kind within the limits."""
        if self.multiple == 0:
            low = max(self.low, 2) if self.even else self.low
            return 1 << (low - 1).bit_length(), 1 << (self.high.bit_length() - 1)
        step = self._step
        return -(-self.low // step) * step, self.high // step * step

    def _fitted(self, size: int) -> int:
        size = min(max(size, self.low), self.high)
        if self.multiple == 0:
            size = 1 << (size - 1).bit_length()
        elif self.multiple == 1:
            size += size % self._step
        else:
            size -= size % self._step
        first, last = self._ends
        return min(max(size, first), last)
