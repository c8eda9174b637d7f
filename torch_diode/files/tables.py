"""Lookup tables on disk: JSON in a stable order, one candidate per line, made for editing; or the
same tree as MessagePack.

The rows of a large file are found at once, and each is parsed when it is asked for: checking a
million would take a minute.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from torch_diode.files import json
from torch_diode.files import msgpack as packed
from torch_diode.files.file_errors import naming_file
from torch_diode.files.header import check_header, header
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Row, Table, TableEntry, check_row, entries_from
from torch_diode.types.validation import SLUG

TABLE_VERSION = 2
Places = npt.NDArray[np.int64]
LARGE = 16 * 2**20
"""Bytes above which a file is read row by row."""
_DEPTH = 4
_END = re.compile(rb"\s*\}\s*\}\s*\}\s*")
_SPACES = np.frombuffer(b" \n\r\t", np.uint8)
_BETWEEN = re.compile(rb'(?:\s*,\s*|(?:"hardware": \{|\s*\},)\s*"([^"]+)": \{\s*)"')
"""The text between two rows, and before the first one of a hardware."""


def read_table(path: str | os.PathLike[str]) -> Table:
    """The table in a file, of this version or the first."""
    with naming_file(path):
        data = Path(path).read_bytes()
        form = packed if packed.is_msgpack(path) else json
        if len(data) > LARGE and (indexed := _indexed(path, data)) is not None:
            return indexed
        return table_from(form.loads(data))


def write_table(table: Table, path: str | os.PathLike[str]) -> None:
    """Write a table atomically, as MessagePack if the name ends so."""
    if packed.is_msgpack(path):
        packed.write_msgpack(path, table_to(table))
    else:
        json.write_json(path, table_to(table), _DEPTH)


def table_to(table: Table) -> dict[str, Any]:
    """The JSON form of a table, with a file's header."""
    provenance = {name: (text,) for name, text in table.provenance}
    return {**header("table", TABLE_VERSION, provenance), "hardware": table.to_dict()["hardware"]}


def table_from(data: Any) -> Table:
    """The table in JSON form."""
    if isinstance(data, dict) and "format" not in data and "hardware" in data:
        from torch_diode.files.legacy import table_of_version_1

        return table_of_version_1(data)
    check_header(data, "table", TABLE_VERSION)
    return Table.from_dict(data)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The keys of a hardware's rows, and from where to where the entries of each are."""

    keys: list[bytes]
    starts: Places
    ends: Places

    @cached_property
    def _by_hash(self) -> tuple[Places, Places]:
        # Sorted hashes: a dict of a million keys takes three times as long.
        hashes = np.fromiter(map(hash, self.keys), np.int64, len(self.keys))
        order = np.argsort(hashes)
        return hashes[order], order

    def position(self, key: bytes) -> int | None:
        """The row of a key."""
        hashes, order = self._by_hash
        low, high = np.searchsorted(hashes, hash(key)), np.searchsorted(hashes, hash(key), "right")
        return next((row for row in order[low:high].tolist() if self.keys[row] == key), None)

    @property
    def has_a_key_twice(self) -> bool:
        """True if two rows have one key, or keys of one hash."""
        hashes, _ = self._by_hash
        return bool((hashes[1:] == hashes[:-1]).any())

    def at(self, places: Places) -> set[int]:
        """The rows whose entries are at these places of the file."""
        rows = np.searchsorted(self.starts, places, "right") - 1
        return set(rows[(rows >= 0) & (places < self.ends[rows])].tolist())


class IndexedTable(Table):
    """A table of which each row is parsed when it is asked for."""

    _path: str | os.PathLike[str]
    _data: bytes
    _found: dict[str, _Rows]

    def __init__(
        self, path: str | os.PathLike[str], data: bytes, head: Table, found: dict[str, _Rows]
    ) -> None:
        vars(self).update(_path=path, _data=data, _found=found, provenance=head.provenance)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """All rows, parsed."""
        return tuple(sorted(self, key=lambda row: row[:2]))

    def __iter__(self) -> Iterator[Row]:
        return (row for name in self._found for row in self.of_hardware(name))

    @cached_property
    def digest(self) -> str:
        """A hash of the file's content."""
        return hashlib.sha256(self._data).hexdigest()

    def __len__(self) -> int:
        return sum(map(self.count, self._found))

    @property
    def hardware(self) -> tuple[str, ...]:
        """The hardware names the table has rows for."""
        return tuple(sorted(self._found))

    def count(self, hardware: str) -> int:
        """The number of rows for a hardware."""
        return len(self._found[hardware].keys) if hardware in self._found else 0

    def of_hardware(self, hardware: str) -> Iterator[Row]:
        """The rows for a hardware, parsed one by one."""
        return (self._row(hardware, number) for number in range(self.count(hardware)))

    def lookup(self, hardware: str, problem: MMShape) -> tuple[TableEntry, ...]:
        """The candidates of a problem's own row, best first; empty where the table has none."""
        found = self._found.get(hardware)
        number = None if found is None else found.position(problem.key.encode())
        return () if number is None else self._row(hardware, number)[2]

    def rows_with_range(self) -> Iterable[Row]:
        """The rows with an entry that holds for a range of M."""
        mark = b"\xa1M" if packed.is_msgpack(self._path) else b'"M"'
        places = np.array([m.start() for m in re.finditer(mark, self._data)], np.int64)
        rows = (self._row(name, n) for name, found in self._found.items() for n in found.at(places))
        return [row for row in rows if any(entry.M for entry in row[2])]

    def spans(self) -> Iterator[tuple[str, MMShape, tuple[int, int]]]:
        """The hardware and problem of each row, and the M that its best entry holds for."""
        ranges = {row[:2]: row[2][0].M for row in self.rows_with_range()}
        for hardware, found in self._found.items():
            for key in found.keys:
                problem = self._problem(key)
                yield hardware, problem, ranges.get((hardware, problem)) or (problem.M, problem.M)

    def _problem(self, key: bytes) -> MMShape:
        with naming_file(self._path):
            return MMShape.from_key(key.decode(errors="replace"))

    def _row(self, hardware: str, number: int) -> Row:
        found = self._found[hardware]
        problem = self._problem(found.keys[number])
        text = self._data[found.starts[number] : found.ends[number]]
        with naming_file(self._path):
            form = packed if packed.is_msgpack(self._path) else json
            entries = entries_from(problem.key, form.loads(text))
            check_row(hardware, problem, entries)
        return hardware, problem, entries


_Index = tuple[dict[str, Any], dict[str, _Rows]]


def _indexed(path: str | os.PathLike[str], data: bytes) -> Table | None:
    """The rows of a large file; None where it has to be read as a whole, which then also says what
    is wrong with it."""
    index = _index_msgpack(data) if packed.is_msgpack(path) else _index_json(data)
    if index is None or "format" not in index[0]:
        return None
    head, found = index
    names = all(re.fullmatch(SLUG, name) for name in found)
    if not names or any(rows.has_a_key_twice for rows in found.values()):
        return None
    return IndexedTable(path, data, table_from(head), found)


def _index_json(data: bytes) -> _Index | None:
    """By brackets, of which each row has one pair: parsing takes several times as long."""
    start = data.find(b'"hardware"')
    text = np.frombuffer(data, np.uint8)
    opens, closes = (np.flatnonzero(text == ord(sign)) for sign in "[]")
    opens, closes = opens[opens > start], closes[closes > start]
    if start < 0 or len(opens) < 2 or len(opens) != len(closes):
        return None
    ordered = (opens < closes).all() and (closes[:-1] < opens[1:]).all()
    if not ordered or any((text[opens - 3 + i] != sign).any() for i, sign in enumerate(b'": ')):
        return None
    keys = [data[data.rfind(b'"', 0, end) + 1 : end] for end in (opens - 3).tolist()]
    before = np.r_[start, closes[:-1] + 1]
    key_starts = opens - 3 - np.fromiter(map(len, keys), np.int64, len(keys))
    plain = _plain_gaps(text, before, key_starts - 1)
    heads: list[tuple[int, str]] = []
    for row in np.flatnonzero(~plain).tolist():
        found = _BETWEEN.match(data, before[row])
        if found is None or found.end() != key_starts[row]:
            return None
        if found[1] is not None:
            heads.append((row, found[1].decode(errors="replace")))
    rows = {}
    for (low, name), (high, _) in itertools.pairwise([*heads, (len(keys), "")]):
        rows[name] = _Rows(keys[low:high], opens[low:high], closes[low:high] + 1)
    if len(rows) != len(heads) or not _END.fullmatch(data, closes[-1] + 1):
        return None
    try:
        return json.loads(data[:start] + b'"hardware": {}}'), rows
    except InvalidValueError:
        return None


def _plain_gaps(text: npt.NDArray[np.uint8], starts: Places, ends: Places) -> npt.NDArray[np.bool_]:
    """Mask of the gaps of the least length that are a comma and spaces."""
    sizes = ends - starts
    plain: npt.NDArray[np.bool_] = (text[starts] == ord(",")) & (sizes >= 1)
    least = sizes[plain].min(initial=np.iinfo(np.int64).max)
    plain &= sizes == least
    for place in range(1, least if plain.any() else 0):
        plain &= np.isin(text[starts + np.minimum(place, sizes)], _SPACES)
    return np.asarray(plain)


def _index_msgpack(data: bytes) -> _Index | None:
    head: dict[str, Any] = {}
    rows: dict[str, _Rows] = {}
    unpacker = msgpack.Unpacker(raw=True, max_buffer_size=len(data))
    unpacker.feed(data)

    def skip() -> tuple[int, int]:
        start = unpacker.tell()
        unpacker.skip()
        return start, unpacker.tell()

    try:
        for _ in range(unpacker.read_map_header()):
            name = unpacker.unpack().decode()
            if name != "hardware":
                head[name] = packed.loads(data[slice(*skip())])
                continue
            for _ in range(unpacker.read_map_header()):
                hardware, count = unpacker.unpack().decode(), unpacker.read_map_header()
                keys, places = [], []
                for _ in range(count):
                    keys.append(unpacker.unpack())
                    places.append(skip())
                if hardware in rows or not {*map(type, keys)} <= {bytes}:
                    return None
                starts, ends = np.array(places, np.int64).reshape(-1, 2).T
                if keys:
                    rows[hardware] = _Rows(keys, starts, ends)
    except (ValueError, AttributeError, msgpack.UnpackException):
        return None
    return ({**head, "hardware": {}}, rows) if unpacker.tell() == len(data) else None
