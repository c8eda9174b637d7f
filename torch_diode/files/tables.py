"""Lookup tables on disk: JSON in a stable order, one candidate per line, made for editing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from torch_diode.files.header import check_header, header, provenance_of
from torch_diode.files.json import read_json, write_json
from torch_diode.types import validation
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Row, Table, TableEntry

TABLE_VERSION = 2
_DEPTH = 4


def read_table(path: str | os.PathLike[str]) -> Table:
    """The table in a file, of this version or the first."""
    table: Table = read_json(path, table_from)
    return table


def write_table(table: Table, path: str | os.PathLike[str], overwrite: bool = True) -> None:
    """Write a table atomically."""
    write_json(path, table_to(table), _DEPTH, overwrite)


def table_to(table: Table) -> dict[str, Any]:
    """The JSON form of a table."""
    data = header("table", TABLE_VERSION, {name: (text,) for name, text in table.provenance})
    data["hardware"] = {name: {} for name in table.hardware}
    for hardware, problem, entries in table:
        data["hardware"][hardware][problem.key] = [entry.to_dict() for entry in entries]
    return data


def table_from(data: Any) -> Table:
    """The table in JSON form."""
    if isinstance(data, dict) and "format" not in data and "hardware" in data:
        from torch_diode.files.legacy import table_of_version_1

        return table_of_version_1(data)
    check_header(data, "table", TABLE_VERSION)
    known = ("format", "version", "provenance", "hardware")
    validation.known_keys("table", data, known, required=("hardware",))
    provenance = tuple((name, ", ".join(texts)) for name, texts in provenance_of(data).items())
    return Table(tuple(_rows(data["hardware"])), provenance)


def _rows(hardware: Any) -> Iterator[Row]:
    for name, problems in validation.mapping("hardware", hardware).items():
        for key, entries in validation.mapping(f"{name!r:.80}", problems).items():
            problem = MMShape.from_key(key)
            validation.sequence(key, entries)
            try:
                yield name, problem, tuple(TableEntry.from_dict(entry) for entry in entries)
            except InvalidValueError as fault:
                raise InvalidValueError(f"{key}: {fault}") from None
