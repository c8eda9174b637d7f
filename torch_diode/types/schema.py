"""The columns of a dataset: one row a timing, every field of a timing a typed column.

This is the one list that the files, the dataset and the feature extractor read. A new field is a
new line here with a default, and files written before it still read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = 2
TEXT = pa.dictionary(pa.int16(), pa.string())


@dataclass(frozen=True)
class Column:
    """A column's name, type, what stands in where a file has none, and its least and greatest."""

    name: str
    type: pa.DataType
    default: Any
    low: int = 0
    high: int = 2**31 - 1
    nullable: bool = False


PROBLEM_COLUMNS = (
    Column("op", TEXT, None),
    Column("B", pa.int32(), 1, low=1),
    Column("M", pa.int32(), None, low=1),
    Column("N", pa.int32(), None, low=1),
    Column("K", pa.int32(), None, low=1),
    Column("dtype", TEXT, None),
    Column("out_dtype", TEXT, None),
    Column("transpose_a", pa.bool_(), False),
    Column("transpose_b", pa.bool_(), False),
    Column("tf32", pa.bool_(), False),
    Column("bias", TEXT, None),
)
CANDIDATE_COLUMNS = (
    Column("template", TEXT, None),
    Column("block_m", pa.int16(), 0, high=4096),
    Column("block_n", pa.int16(), 0, high=4096),
    Column("block_k", pa.int16(), 0, high=4096),
    Column("group_m", pa.int16(), 0, high=1024),
    Column("num_stages", pa.int8(), 0, high=32),
    Column("num_warps", pa.int8(), 0, high=64),
    Column("waves_per_eu", pa.int8(), 0, high=16),
    Column("matrix_instr_nonkdim", pa.int8(), 0, high=64),
    Column("kpack", pa.int8(), 0, high=8),
    Column("split_k", pa.int32(), 1, low=1, high=65536),
)
RESULT_COLUMNS = (
    Column("time_us", pa.float32(), None, nullable=True),
    Column("spread", pa.float32(), None, nullable=True),
    Column("repeats", pa.int16(), 1, high=2**15 - 1),
    Column("status", TEXT, "ok"),
)
MEASURED_COLUMNS = (
    Column("method", TEXT, "sweep"),
    Column("torch", TEXT, ""),
    Column("triton", TEXT, ""),
)
COLUMNS = (
    Column("hardware", TEXT, None),
    *PROBLEM_COLUMNS,
    *CANDIDATE_COLUMNS,
    *RESULT_COLUMNS,
    *MEASURED_COLUMNS,
)
BY_NAME = {column.name: column for column in COLUMNS}

PROBLEM_NAMES = tuple(column.name for column in PROBLEM_COLUMNS)
CANDIDATE_NAMES = tuple(column.name for column in CANDIDATE_COLUMNS)
MEASURED_NAMES = tuple(column.name for column in MEASURED_COLUMNS)
GROUP_NAMES = ("hardware", *PROBLEM_NAMES)
KEY_NAMES = (*GROUP_NAMES, *CANDIDATE_NAMES, *MEASURED_NAMES)
SCHEMA = pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in COLUMNS])
