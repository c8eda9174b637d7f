"""Grouping of rows by the values of columns: exact, and quick on millions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """The group number of each row (0, 1, …, in order of first appearance), and the first row of
    each group."""

    ids: Ids
    first: Ids

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def counts(self) -> Ids:
        """Rows of each group."""
        return np.bincount(self.ids, minlength=len(self)).astype(np.int64)

    def fastest(self, times: npt.NDArray[np.floating], k: int = 1) -> Ids:
        """Rows of the k fastest of each group, group by group, best first; NaN is no time."""
        usable = np.flatnonzero(np.isfinite(times))
        order = usable[np.lexsort((times[usable], self.ids[usable]))]
        ids = self.ids[order]
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else ids
        rank = np.arange(len(ids)) - np.repeat(starts, np.diff(np.r_[starts, len(ids)]))
        return order[rank < k]


def group(table: pa.Table, names: Sequence[str]) -> Groups:
    """Group rows by the values of these columns.

    Rows of one group are mostly adjacent, so runs are found first and only their heads numbered.
    """
    columns = [column_numbers(table.column(name)) for name in names]
    starts = np.zeros(table.num_rows, dtype=bool)
    starts[:1] = True
    for values in columns:
        starts[1:] |= values[1:] != values[:-1]
    heads = np.flatnonzero(starts)
    head_ids = number_rows([values[heads] for values in columns], len(heads))
    first = np.empty(int(head_ids.max()) + 1 if len(heads) else 0, dtype=np.int64)
    first[head_ids[::-1]] = heads[::-1]
    return Groups(head_ids[np.cumsum(starts) - 1] if len(heads) else head_ids, first)


def number_rows(columns: list[npt.NDArray[Any]], rows: int) -> Ids:
    """Number rows so that equal rows share a number: 0, 1, …, in order of first appearance.

    Columns are the digits of a mixed-radix number. Before it could overflow, the numbers so far are
    made dense again: the result is exact, not a hash.
    """
    ids = np.zeros(rows, dtype=np.int64)
    span = 1
    for values in columns:
        if not rows:
            break
        low, high = int(values.min()), int(values.max())
        if low == high:
            continue
        radix = high - low + 1
        if span * radix >= 2**62:
            ids = _dense(ids)
            span = int(ids.max()) + 1
        ids *= radix
        ids += values
        ids -= low
        span *= radix
    return _dense(ids)


def column_numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column's values as numbers: the codes of a text column, the values of any other."""
    if not column.num_chunks:
        return np.zeros(0, dtype=np.int64)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.indices
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _dense(values: Ids) -> Ids:
    return np.asarray(pa.array(values).dictionary_encode().indices.to_numpy(), dtype=np.int64)
