"""Timings of the vendor's kernel alone, a thousand and more problems per second.

Its time is a step function of the sizes, because the library chooses among its own kernels, so
learning it takes many problems; and it needs no compiling. Problems are timed in batches on views
of one random buffer: allocating fresh tensors would take longer than timing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_diode.collection.kernels.operands import Operands, tf32_precision
from torch_diode.collection.sweep import result_columns
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.timer import summarise
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import BATCHED, DTYPE_BYTES, MMShape

_ALIGNMENT = 256
"""Bytes; what torch's allocator gives, so that no kernel sees a worse address than it would."""
_SAMPLES = 5
"""Of each problem. Times of two runs are as far apart with eight: 2.6% in the median."""
_BATCH = 600 // _SAMPLES
"""Problems; twice what the timer queues at once."""


@dataclass
class VendorSweep:
    """Times ATen on batches of problems."""

    hardware: str
    timer: CudaTimer
    releases: Mapping[str, str]
    pool_bytes: int = 4 << 30
    seed: int = 0

    def __post_init__(self) -> None:
        self._pools = {
            name: _Pool(name, self.pool_bytes, self.timer.device, self.seed)
            for name in ("bfloat16", "float16", "float32")
        }

    def time(self, problems: Sequence[MMShape]) -> Iterator[Dataset]:
        """Yield timings batch by batch; problems of one TF32 setting must be adjacent."""
        for on in (False, True):
            own = [p for p in problems if p.tf32 == on]
            for start in range(0, len(own), _BATCH):
                with tf32_precision(on):
                    batch = self._batch(own[start : start + _BATCH])
                yield batch

    def _batch(self, problems: Sequence[MMShape]) -> Dataset:
        launches = [self._pools[p.dtype].operands(p).aten() for p in problems]
        for launch in launches:
            launch()
        samples = self.timer.repeat(launches, _SAMPLES)
        count = len(problems)
        columns: dict[str, Any] = {"hardware": [self.hardware] * count}
        rows = [p.to_dict() for p in problems]
        columns |= {name: [row[name] for row in rows] for name in rows[0]}
        vendor = Candidates.of([Candidate(ATEN)])
        columns["template"] = [ATEN] * count
        columns |= {name: vendor.fields[name].tolist() * count for name in NUMBER_FIELDS}
        columns["status"] = ["ok"] * count
        columns |= result_columns([summarise(taken) for taken in samples])
        columns |= {name: [text] * count for name, text in self.releases.items()}
        columns["method"] = ["sweep"] * count
        return Dataset.from_columns(columns)


class _Pool:
    """Buffer of random values that operands are views of, each at its own offset."""

    def __init__(self, dtype: str, size: int, device: torch.device, seed: int) -> None:
        generator = torch.Generator(device).manual_seed(seed)
        self._bytes = DTYPE_BYTES[dtype]
        count = size // self._bytes
        torch_dtype = getattr(torch, dtype)
        self._values = torch.randn(count, dtype=torch_dtype, device=device, generator=generator)
        self._output_buffer = torch.empty(count // 4, dtype=torch_dtype, device=device)
        self._random = random.Random(seed)

    def operands(self, problem: MMShape) -> Operands:
        """The problem's tensors; inputs may share memory with other problems' and are never
        written."""
        batch = (problem.B,) if problem.op in BATCHED else ()
        m, n, k = problem.M, problem.N, problem.K
        out = self._cut(self._output_buffer, *batch, m, n)
        bias = None
        if problem.bias != "none":
            shape = (n,) if problem.bias == "vector" else (*batch, m, n)
            bias = self._cut(self._values, *shape)
        a = self._matrix(batch, m, k, problem.transpose_a)
        b = self._matrix(batch, k, n, problem.transpose_b)
        return Operands(problem, a, b, out, bias)

    def _matrix(
        self, batch: tuple[int, ...], rows: int, columns: int, transposed: bool
    ) -> torch.Tensor:
        if transposed:
            return self._cut(self._values, *batch, columns, rows).mT
        return self._cut(self._values, *batch, rows, columns)

    def _cut(self, source: torch.Tensor, *shape: int) -> torch.Tensor:
        size = 1
        for length in shape:
            size *= length
        steps = (len(source) - size) * self._bytes // _ALIGNMENT
        if steps < 0:
            raise InvalidValueError(
                f"vendor sweep: got a tensor of {size * self._bytes:,} bytes; expected at most "
                f"{len(source) * self._bytes:,}; time it with the sweep"
            )
        start = self._random.randint(0, steps) * _ALIGNMENT // self._bytes
        return source[start : start + size].view(shape)
