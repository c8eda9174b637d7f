"""The columns of a dataset, one row per timing, and the checks of a table against them.

`COLUMNS` is the one list that the files, the dataset and the feature extractor read. A new field is
a new line there with a default, and files written before it still read. The checks are those of the
row types (`MMShape`, `Candidate`, `Timing`), over whole columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from torch_diode.types.candidate import (
    CONFIG_FIELDS,
    CPP_FIELDS,
    DECOMPOSE_K,
    LIBRARIES,
    STATUSES,
    TEMPLATE_FORM,
)
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import BATCHED, BIASES, DTYPES, OPS
from torch_diode.types.timing import MOST_THREADS
from torch_diode.types.validation import SLUG, VERSION

SCHEMA_VERSION = 2
TEXT = pa.dictionary(pa.int16(), pa.string())
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Column:
    """A column's name, type, default, limits and, for text, its choices or its pattern."""

    name: str
    type: pa.DataType
    default: Any
    low: int = 0
    high: int = 2**31 - 1
    nullable: bool = False
    choices: tuple[str, ...] = ()
    pattern: str = ""


PROBLEM_COLUMNS = (
    Column("op", TEXT, None, choices=OPS),
    Column("B", pa.int32(), 1, low=1),
    Column("M", pa.int32(), None, low=1),
    Column("N", pa.int32(), None, low=1),
    Column("K", pa.int32(), None, low=1),
    Column("dtype", TEXT, None, choices=DTYPES),
    Column("out_dtype", TEXT, None, choices=DTYPES),
    Column("transpose_a", pa.bool_(), False),
    Column("transpose_b", pa.bool_(), False),
    Column("tf32", pa.bool_(), False),
    Column("bias", TEXT, None, choices=BIASES),
)
CANDIDATE_COLUMNS = (
    Column("template", TEXT, None, pattern=TEMPLATE_FORM),
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
    Column("status", TEXT, "ok", choices=STATUSES),
)
MEASURED_COLUMNS = (
    Column("method", TEXT, "sweep", pattern=SLUG),
    Column("torch", TEXT, "", pattern=VERSION),
    Column("triton", TEXT, "", pattern=VERSION),
    Column("threads", pa.int16(), 0, high=MOST_THREADS),
)
COLUMNS = (
    Column("hardware", TEXT, None, pattern=SLUG),
    *PROBLEM_COLUMNS,
    *CANDIDATE_COLUMNS,
    *RESULT_COLUMNS,
    *MEASURED_COLUMNS,
)
BY_NAME = {column.name: column for column in COLUMNS}

PROBLEM_NAMES = tuple(column.name for column in PROBLEM_COLUMNS)
CANDIDATE_NAMES = tuple(column.name for column in CANDIDATE_COLUMNS)
RESULT_NAMES = tuple(column.name for column in RESULT_COLUMNS)
MEASURED_NAMES = tuple(column.name for column in MEASURED_COLUMNS)
GROUP_NAMES = ("hardware", "threads", *PROBLEM_NAMES)
KEY_NAMES = ("hardware", *PROBLEM_NAMES, *CANDIDATE_NAMES, *MEASURED_NAMES)
SCHEMA = pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in COLUMNS])

_POWERS = ("block_m", "block_n", "block_k", "num_warps")


def conform(table: pa.Table) -> pa.Table:
    """The table with all columns of the schema, in order, typed and checked."""
    arrays = conform_columns(table, COLUMNS)
    rows = _Rows(arrays)
    _check_problems(rows)
    _check_candidates(rows)
    return pa.table([arrays[c.name] for c in COLUMNS], schema=SCHEMA)


def conform_columns(table: pa.Table, columns: Sequence[Column]) -> dict[str, pa.Array]:
    """A table's columns in this order, typed and checked, and its results; of any decision."""
    names = [column.name for column in columns]
    unknown = [name for name in table.column_names if name not in names]
    if unknown:
        raise InvalidValueError(
            f"dataset: got an unknown column {unknown[0]!r:.80}; expected only {', '.join(names)}"
        )
    if len(set(table.column_names)) != len(table.column_names):
        raise InvalidValueError("dataset: got a column twice; expected each once")
    arrays: dict[str, pa.Array] = {}
    for column in columns:
        arrays[column.name] = _typed(column, table, arrays)
        _check_column(column, arrays[column.name])
    _mark_not_run(arrays)
    _check_results(_Rows(arrays))
    return arrays


def _mark_not_run(arrays: dict[str, pa.Array]) -> None:
    """A time of infinity, as other tools write it, is no time, of what failed."""
    time, status = arrays["time_us"], arrays["status"]
    never = np.isposinf(time.to_numpy(zero_copy_only=False))
    if never.any():
        failed = pc.and_(never, pc.equal(status.cast(pa.string()), "ok"))
        texts = pc.if_else(failed, "failed", status.cast(pa.string()))
        arrays["time_us"] = pc.if_else(never, pa.scalar(None, time.type), time)
        arrays["status"] = texts.dictionary_encode().cast(TEXT)


def _typed(column: Column, table: pa.Table, typed: dict[str, pa.Array]) -> pa.Array:
    """One column as a single array of its type, its default where the table has none."""
    if column.name not in table.column_names:
        return _default(column, table.num_rows, typed)
    array = table.column(column.name)
    try:
        if not any(fits(array.type) for fits in _accepted(column.type)):
            raise pa.ArrowInvalid("another kind of value")
        array = _text(array) if column.type == TEXT else array.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as fault:
        reason = str(fault).splitlines()[0][:120]
        raise InvalidValueError(
            f"dataset column {column.name!r}: got {array.type} ({reason}); expected {column.type}"
        ) from None
    if array.num_chunks == 1:
        return array.chunk(0)
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)


def _accepted(type_: pa.DataType) -> tuple[Callable[[pa.DataType], bool], ...]:
    """Tests of the types a column may come in: arrow would also turn "8" and True into a number."""
    kinds = pa.types
    if type_ == TEXT:
        return kinds.is_string, kinds.is_large_string, _is_text_dictionary, kinds.is_null
    if kinds.is_boolean(type_):
        return kinds.is_boolean, kinds.is_null
    if kinds.is_integer(type_):
        return kinds.is_integer, kinds.is_null
    return kinds.is_floating, kinds.is_integer, kinds.is_null


def _is_text_dictionary(type_: pa.DataType) -> bool:
    texts = (pa.string(), pa.large_string())
    return pa.types.is_dictionary(type_) and type_.value_type in texts


def _default(column: Column, rows: int, typed: dict[str, pa.Array]) -> pa.Array:
    if column.name == "out_dtype":
        return typed["dtype"]
    if column.nullable:
        return pa.nulls(rows, column.type)
    if column.default is None:
        raise InvalidValueError(f"dataset: got no column {column.name!r}; expected one, add it")
    if column.type == TEXT:
        codes = pa.array(np.zeros(rows, dtype=np.int16))
        return pa.DictionaryArray.from_arrays(codes, pa.array([column.default], pa.string()))
    return pa.array(np.full(rows, column.default)).cast(column.type)


def _text(array: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.string()).dictionary_encode()
    array = array.unify_dictionaries()
    for chunk in array.chunks[:1]:
        if len(chunk.dictionary.unique()) != len(chunk.dictionary):
            # Two codes for one text would make two groups of one.
            array = array.cast(chunk.dictionary.type).dictionary_encode()
    return array.cast(TEXT)


def _check_column(column: Column, array: pa.Array) -> None:
    label = f"dataset column {column.name!r}"
    if array.null_count and not column.nullable:
        raise InvalidValueError(f"{label}: got {array.null_count} missing values; expected none")
    if column.type == TEXT:
        codes = array.indices.to_numpy()
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(array.dictionary):
            raise InvalidValueError(f"{label}: got a code without a text; the file is damaged")
        for text in array.dictionary.to_pylist():
            _check_text(column, text)
    elif pa.types.is_integer(column.type) and len(array):
        values = array.to_numpy()
        low, high = int(values.min()), int(values.max())
        if low < column.low or high > column.high:
            raise InvalidValueError(
                f"{label}: got {low if low < column.low else high}; "
                f"expected whole numbers from {column.low} to {column.high}"
            )


def _check_text(column: Column, text: str | None) -> None:
    if column.choices:
        valid, expected = text in column.choices, "one of " + ", ".join(column.choices)
    else:
        valid = text is not None and len(text) <= 200 and bool(re.fullmatch(column.pattern, text))
        expected = "a short name in letters, digits, '.', '-', '_', '+' and (templates) '::'"
    if not valid:
        raise InvalidValueError(
            f"dataset column {column.name!r}: got {text!r:.80}; expected {expected}"
        )


@dataclass(frozen=True)
class _Rows:
    """Columns as numbers, and conditions on text columns as masks over all rows."""

    arrays: dict[str, pa.Array]

    def where(self, name: str, wanted: Callable[[str], bool]) -> Mask:
        array = self.arrays[name]
        table = np.array([wanted(text) for text in array.dictionary.to_pylist()], dtype=bool)
        if table.all() or not table.any():
            return np.broadcast_to(table.any(), len(array))
        return np.asarray(table[array.indices.to_numpy()])

    def numbers(self, name: str) -> npt.NDArray[Any]:
        return np.asarray(self.arrays[name].to_numpy(zero_copy_only=False))

    def present(self, name: str) -> Mask:
        return np.asarray(self.arrays[name].is_valid().to_numpy(zero_copy_only=False))


def _check_results(rows: _Rows) -> None:
    ok, time = rows.where("status", "ok".__eq__), rows.numbers("time_us")
    timed = rows.present("time_us")
    valid = timed & np.isfinite(time) & (time > 0)
    _refuse(ok & ~valid, "time_us", time, "microseconds above zero and finite where status is ok")
    _refuse(~ok & timed, "time_us", time, "no time where status is not ok")
    spread = rows.numbers("spread")
    bad = rows.present("spread") & ~(np.isfinite(spread) & (spread >= 0))
    _refuse(bad, "spread", spread, "a fraction of the time, 0 or more")


def _check_problems(rows: _Rows) -> None:
    batch = rows.numbers("B")
    plain = rows.where("op", lambda op: op not in BATCHED)
    _refuse(plain & (batch != 1), "B", batch, "1 for mm and addmm")
    biased = rows.where("op", lambda op: op in ("addmm", "baddbmm"))
    has_bias = rows.where("bias", lambda bias: bias != "none")
    expected = "none for mm and bmm, vector or matrix for addmm and baddbmm"
    _refuse(biased != has_bias, "bias", has_bias, expected)
    tf32 = rows.numbers("tf32")
    if tf32.any():
        other = rows.where("dtype", lambda dtype: dtype != "float32")
        _refuse(tf32 & other, "tf32", tf32, "false unless dtype is float32")


def _check_candidates(rows: _Rows) -> None:
    triton = rows.where("template", lambda t: t.startswith("triton::"))
    cpp = rows.where("template", lambda t: t.startswith("cpp::"))
    bare = rows.where("template", lambda t: t in (*LIBRARIES, DECOMPOSE_K))
    block_m = rows.numbers("block_m")
    has_config = block_m != 0
    _refuse((triton | cpp) & ~has_config, "block_m", block_m, "1 or more for a template")
    _refuse(bare & has_config, "block_m", block_m, "0 for a library and decompose_k")
    for name in CONFIG_FIELDS:
        values = rows.numbers(name)
        if name in _POWERS:
            _refuse(~cpp & ((values & (values - 1)) != 0), name, values, "a power of two")
        needed = has_config if name in CPP_FIELDS else has_config & ~cpp
        if name in (*_POWERS, "group_m"):
            _refuse(needed & (values == 0), name, values, "1 or more in a config")
        if name not in CPP_FIELDS:
            _refuse(cpp & (values != 0), name, values, "0 for a C++ template")
        _refuse(~has_config & (values != 0), name, values, "0 where there is no config")
    split = rows.numbers("split_k")
    decompose = rows.where("template", DECOMPOSE_K.__eq__)
    expected = "2 or more for decompose_k, 1 for every other template"
    _refuse(decompose != (split > 1), "split_k", split, expected)


def _refuse(bad: Mask, name: str, values: npt.NDArray[Any], expected: str) -> None:
    if not bad.any():
        return
    row, count = int(np.argmax(bad)), int(np.count_nonzero(bad))
    more = f" (and {count - 1} more rows)" if count > 1 else ""
    raise InvalidValueError(
        f"dataset column {name!r}, row {row}{more}: got {values[row]}; expected {expected}"
    )
