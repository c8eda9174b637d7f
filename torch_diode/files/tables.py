"""Lookup tables on disk: JSON in a stable order, one candidate a line, made for editing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from torch_diode.files import legacy
from torch_diode.files.file_errors import naming_file
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
    data = read_json(path)
    with naming_file(path):
        return table_from(data)


def write_table(table: Table, path: str | os.PathLike[str]) -> None:
    """A table as a file, whole or not at all."""
    write_json(path, table_to(table), _DEPTH)


def table_to(table: Table) -> dict[str, Any]:
    """The table as JSON has it."""
    data = header("table", TABLE_VERSION, {name: (text,) for name, text in table.provenance})
    data["hardware"] = {name: {} for name in table.hardware}
    for hardware, problem, entries in table:
        data["hardware"][hardware][problem.key] = [entry.to_dict() for entry in entries]
    return data


def table_from(data: Any) -> Table:
    """The table JSON holds."""
    if isinstance(data, dict) and "format" not in data and "hardware" in data:
        return legacy.table_of_version_1(data)
    check_header(data, "table", TABLE_VERSION)
    known = ("format", "version", "provenance", "hardware")
    validation.known_keys("table", data, known, required=("hardware",))
    provenance = tuple((name, ", ".join(met)) for name, met in provenance_of(data).items())
    return Table(tuple(_rows(data["hardware"])), provenance)


def _rows(hardware: Any) -> Iterator[Row]:
    for name, problems in _items("hardware", hardware):
        for key, entries in _items(name, problems):
            problem = MMShape.from_key(key)
            if not isinstance(entries, list):
                raise InvalidValueError(f"{key}: got no list of candidates; expected one")
            try:
                yield name, problem, tuple(TableEntry.from_dict(entry) for entry in entries)
            except InvalidValueError as fault:
                raise InvalidValueError(f"{key}: {fault}") from None


def _items(owner: str, data: Any) -> Any:
    if not isinstance(data, dict):
        raise InvalidValueError(f"{owner!r:.80}: got {type(data).__name__}; expected an object")
    return data.items()
