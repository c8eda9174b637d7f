"""Bringing an arrow table into a dataset's schema, and refusing what no timing can be.

The checks are those of the row types (`MMShape`, `Candidate`, `Timing`), over whole columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_diode.types import schema as spec
from torch_diode.types.candidate import ATEN, CONFIG_FIELDS, DECOMPOSE_K, TEMPLATE_FORM
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.grouping import column_numbers, group, number_rows
from torch_diode.types.problem import BATCHED, BIASES, DTYPES, OPS
from torch_diode.types.timing import SLUG, STATUSES, VERSION

Mask = npt.NDArray[np.bool_]

_TEXT_FORMS = {
    "hardware": SLUG,
    "method": SLUG,
    "torch": VERSION,
    "triton": VERSION,
    "template": TEMPLATE_FORM,
}
_TEXT_CHOICES = {
    "op": OPS,
    "dtype": DTYPES,
    "out_dtype": DTYPES,
    "bias": BIASES,
    "status": STATUSES,
}

_POWERS = ("block_m", "block_n", "block_k", "num_warps")


def conform(table: pa.Table) -> pa.Table:
    """The table with all columns of the schema, in order, typed and checked."""
    unknown = [name for name in table.column_names if name not in spec.BY_NAME]
    if unknown:
        known = ", ".join(spec.BY_NAME)
        raise InvalidValueError(
            f"dataset: got an unknown column {unknown[0]!r:.80}; expected only {known}"
        )
    if len(set(table.column_names)) != len(table.column_names):
        raise InvalidValueError("dataset: got a column twice; expected each once")
    arrays: dict[str, pa.Array] = {}
    for column in spec.COLUMNS:
        arrays[column.name] = _typed(column, table, arrays)
        _check_column(column, arrays[column.name])
    conformed = pa.table([arrays[c.name] for c in spec.COLUMNS], schema=spec.SCHEMA)
    rows = _Rows(arrays)
    _check_results(rows)
    _check_problems(rows)
    _check_candidates(rows)
    _check_unique(conformed)
    return conformed


def _typed(column: spec.Column, table: pa.Table, done: dict[str, pa.Array]) -> pa.Array:
    """One column as a single array of its type, its default where the table has none."""
    if column.name not in table.column_names:
        return _default(column, table.num_rows, done)
    array = table.column(column.name)
    try:
        if not any(fits(array.type) for fits in _accepted(column.type)):
            raise pa.ArrowInvalid("another kind of value")
        if column.type == spec.TEXT:
            return _one_array(_text(array), spec.TEXT)
        return _one_array(array.cast(column.type), column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as fault:
        reason = str(fault).splitlines()[0][:120]
        raise InvalidValueError(
            f"dataset column {column.name!r}: got {array.type} ({reason}); expected {column.type}"
        ) from None


def _accepted(type_: pa.DataType) -> tuple[Callable[[pa.DataType], bool], ...]:
    """What a column of this type may come as: arrow would also turn "8" and True into a number."""
    kinds = pa.types
    if type_ == spec.TEXT:
        return kinds.is_string, kinds.is_large_string, _is_text_dictionary, kinds.is_null
    if kinds.is_boolean(type_):
        return kinds.is_boolean, kinds.is_null
    if kinds.is_integer(type_):
        return kinds.is_integer, kinds.is_null
    return kinds.is_floating, kinds.is_integer, kinds.is_null


def _is_text_dictionary(type_: pa.DataType) -> bool:
    texts = (pa.string(), pa.large_string())
    return pa.types.is_dictionary(type_) and type_.value_type in texts


def _default(column: spec.Column, rows: int, done: dict[str, pa.Array]) -> pa.Array:
    if column.name == "out_dtype":
        return done["dtype"]
    if column.nullable:
        return pa.nulls(rows, column.type)
    if column.default is None:
        raise InvalidValueError(f"dataset: got no column {column.name!r}; expected one, add it")
    if column.type == spec.TEXT:
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
    return array.cast(spec.TEXT)


def _one_array(array: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    if array.num_chunks == 1:
        return array.chunk(0)
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type_)


def _check_column(column: spec.Column, array: pa.Array) -> None:
    label = f"dataset column {column.name!r}"
    if array.null_count and not column.nullable:
        raise InvalidValueError(f"{label}: got {array.null_count} missing values; expected none")
    if column.type == spec.TEXT:
        _check_codes(label, array)
        for text in array.dictionary.to_pylist():
            _check_text(column.name, text)
    elif pa.types.is_integer(column.type) and len(array):
        values = array.to_numpy()
        low, high = int(values.min()), int(values.max())
        if low < column.low or high > column.high:
            raise InvalidValueError(
                f"{label}: got {low if low < column.low else high}; "
                f"expected whole numbers from {column.low} to {column.high}"
            )


def _check_codes(label: str, array: pa.Array) -> None:
    """A damaged file can hold codes that point outside the dictionary."""
    codes = array.indices.to_numpy()
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(array.dictionary):
        raise InvalidValueError(f"{label}: got a code without a text; the file is damaged")


def _check_text(name: str, text: str | None) -> None:
    if name in _TEXT_CHOICES:
        good, expected = text in _TEXT_CHOICES[name], "one of " + ", ".join(_TEXT_CHOICES[name])
    else:
        form = _TEXT_FORMS[name]
        good = text is not None and len(text) <= 200 and bool(re.fullmatch(form, text))
        expected = "a short name in letters, digits, '.', '-', '_', '+' and (templates) '::'"
    if not good:
        raise InvalidValueError(f"dataset column {name!r}: got {text!r:.80}; expected {expected}")


@dataclass(frozen=True)
class _Rows:
    """The columns, asked for as numbers and as masks over all rows."""

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
    fine = timed & np.isfinite(time) & (time > 0)
    _refuse(ok & ~fine, "time_us", time, "microseconds above zero and finite where status is ok")
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
    bare = rows.where("template", lambda t: t in (ATEN, DECOMPOSE_K))
    block_m = rows.numbers("block_m")
    has_config = block_m != 0
    _refuse(triton & ~has_config, "block_m", block_m, "1 or more for a Triton template")
    _refuse(bare & has_config, "block_m", block_m, "0 for aten and decompose_k")
    for name in CONFIG_FIELDS:
        values = rows.numbers(name)
        if name in _POWERS:
            _refuse((values & (values - 1)) != 0, name, values, "a power of two")
        if name in (*_POWERS, "group_m"):
            _refuse(has_config & (values == 0), name, values, "1 or more in a config")
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


def _check_unique(table: pa.Table) -> None:
    """Refuse a timing that stands twice. Problems and candidates are numbered apart: each is few,
    so their pairs fit a bitmap, and no row has to be hashed."""
    problems = group(table, (*spec.GROUP_NAMES, *spec.MEASURED_NAMES)).ids
    columns = [column_numbers(table.column(name)) for name in spec.CANDIDATE_NAMES]
    pairs = number_rows(columns, table.num_rows)
    pairs += problems * (int(pairs.max(initial=0)) + 1)
    if int(pairs.max(initial=0)) < 16 * max(table.num_rows, 2**16):
        twice = int(np.bincount(pairs).max(initial=0)) > 1
    else:
        twice = len(np.unique(pairs)) < len(pairs)
    if not twice:
        return
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    row = int(np.argmax(first[inverse] != np.arange(len(pairs))))
    raise InvalidValueError(
        f"dataset: got the same timing twice, in rows {int(first[inverse][row])} and {row}; "
        "expected each problem, candidate, method and release once; "
        "merge with duplicates 'first' or 'last' to keep one"
    )
