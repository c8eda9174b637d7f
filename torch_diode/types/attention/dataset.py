"""The dataset of attention's timings: columns, one row per timing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_diode.types import schema as spec
from torch_diode.types.attention.shape import DTYPES, KINDS, LAYOUTS, SIZES, AttentionShape
from torch_diode.types.candidate import KernelConfig
from torch_diode.types.dataset import Provenance, merged_provenance, provenance_of
from torch_diode.types.grouping import Groups, group

PROBLEM_COLUMNS = (
    *(spec.Column(name, pa.int32(), None, low=1) for name in SIZES),
    spec.Column("dtype", spec.TEXT, None, choices=DTYPES),
    spec.Column("kind", spec.TEXT, "forward", choices=KINDS),
    spec.Column("layout", spec.TEXT, "bhmd", choices=LAYOUTS),
    spec.Column("score_ops", pa.int16(), 0, high=10_000),
    spec.Column("score_reads", pa.int16(), 0, high=10_000),
)
CONFIG_COLUMNS = (
    *(spec.Column(name, pa.int16(), 0, high=4096) for name in ("block_m", "block_n")),
    spec.Column("num_stages", pa.int8(), None, low=1, high=32),
    spec.Column("num_warps", pa.int8(), None, low=1, high=64),
)
COLUMNS = (
    spec.BY_NAME["hardware"],
    *PROBLEM_COLUMNS,
    *CONFIG_COLUMNS,
    *spec.RESULT_COLUMNS,
    *spec.MEASURED_COLUMNS,
)
PROBLEM_NAMES = tuple(column.name for column in PROBLEM_COLUMNS)
_SCHEMA = pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in COLUMNS])


@dataclass(frozen=True, eq=False)
class AttentionDataset:
    """Timings of flex attention's kernels, with where they come from, as a matmul `Dataset`."""

    table: pa.Table
    provenance: Provenance = field(default_factory=dict)

    def __post_init__(self) -> None:
        arrays = spec.conform_columns(self.table, COLUMNS)
        table = pa.table([arrays[c.name] for c in COLUMNS], schema=_SCHEMA)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "provenance", provenance_of(self.provenance))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AttentionDataset):
            return NotImplemented
        return self.provenance == other.provenance and bool(self.table.equals(other.table))

    def __hash__(self) -> int:
        return hash(str(self.provenance))

    @cached_property
    def problems(self) -> Groups:
        """Rows grouped by hardware and problem."""
        return group(self.table, ("hardware", *PROBLEM_NAMES))

    def values(self, name: str) -> npt.NDArray[Any]:
        """A number column as an array; a missing time is NaN."""
        array = self.table.column(name).combine_chunks()
        return np.asarray(array.to_numpy(zero_copy_only=False))

    def texts(self, name: str) -> list[str]:
        """A text column's values, row by row."""
        return [str(text) for text in self.table.column(name).to_pylist()]

    def problem(self, row: int) -> AttentionShape:
        """The problem of one row."""
        return AttentionShape(**{n: self.table.column(n)[row].as_py() for n in PROBLEM_NAMES})

    def config(self, row: int) -> KernelConfig:
        """The config of one row."""
        block_m, block_n, stages, warps = (
            int(self.table.column(column.name)[row].as_py()) for column in CONFIG_COLUMNS
        )
        return KernelConfig((("block_m", block_m), ("block_n", block_n)), stages, warps)

    @classmethod
    def merge(cls, parts: list[AttentionDataset]) -> AttentionDataset:
        """One dataset from several."""
        table = pa.concat_tables([part.table for part in parts]).unify_dictionaries()
        return cls(table, merged_provenance(part.provenance for part in parts))
