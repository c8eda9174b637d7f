"""JSON, read strictly and written for reading: outer levels on lines, each record on one line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

from torch_diode.files.atomic import write_text
from torch_diode.files.file_errors import naming_file, read_whole
from torch_diode.types.errors import InvalidValueError

_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def read_json(path: str | os.PathLike[str], parse: Callable[[Any], Any] | None = None) -> Any:
    """The content of a JSON file, or what `parse` makes of it; errors of both name the file."""
    with naming_file(path):
        data = loads(read_whole(path))
        return parse(data) if parse else data


def write_json(path: str | os.PathLike[str], data: Any, depth: int, overwrite: bool = True) -> None:
    """Write `data` as a JSON file, its first `depth` levels spread over lines."""
    write_text(path, dumps(data, depth) + "\n", overwrite)


def loads(data: bytes) -> Any:
    """Parse standard JSON: no NaN, no duplicate keys, no unbounded nesting."""
    try:
        value = json.loads(
            data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_key_twice
        )
        if _LONE_SURROGATE.search(data):
            _encode(value).encode("utf-8")
    except RecursionError:
        raise InvalidValueError("got JSON nested too deeply; expected a few levels") from None
    except UnicodeEncodeError:
        raise InvalidValueError("got half of a surrogate pair; expected whole characters") from None
    except UnicodeDecodeError as fault:
        raise InvalidValueError(f"got bytes that are not UTF-8 at {fault.start}") from None
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise InvalidValueError(f"not JSON: {fault.msg} ({where})") from None
    except InvalidValueError:
        raise
    except ValueError as fault:  # a number of thousands of digits
        raise InvalidValueError(f"not JSON that can be read: {fault!s:.120}") from None
    return value


def _no_constant(name: str) -> Any:
    raise InvalidValueError(f"got {name}; expected a finite number")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidValueError(f"got the key {twice!r:.90} twice in one object; remove one")
    return data


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
