"""JSON, read strictly and written for reading: outer levels on lines, each record on one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_diode.files.atomic import write_text
from torch_diode.files.file_errors import naming_file
from torch_diode.types.validation import loads as loads

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def read_json(path: str | os.PathLike[str], parse: Callable[[Any], Any] | None = None) -> Any:
    """The content of a JSON file, or what `parse` makes of it; errors of both name the file."""
    with naming_file(path):
        data = loads(Path(path).read_bytes())
        return parse(data) if parse else data


def write_json(path: str | os.PathLike[str], data: Any, depth: int) -> None:
    """Write `data` as a JSON file, its first `depth` levels spread over lines."""
    write_text(path, dumps(data, depth) + "\n")


def dumps(data: Any, depth: int, indent: str = "") -> str:
    """`data` as text, its first `depth` levels spread over lines, the rest on one line each."""
    if depth == 0 or not isinstance(data, (dict, list)) or not data:
        return _encode(data)
    inner = indent + "  "
    if isinstance(data, dict):
        items = [f"{_encode(k)}: {dumps(v, depth - 1, inner)}" for k, v in data.items()]
        opening, closing = "{", "}"
    else:
        items = [dumps(value, depth - 1, inner) for value in data]
        opening, closing = "[", "]"
    body = f",\n{inner}".join(items)
    return f"{opening}\n{inner}{body}\n{indent}{closing}"
