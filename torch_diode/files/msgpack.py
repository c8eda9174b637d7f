"""MessagePack: the tree of the JSON form in fewer bytes; plain data only, no extension types."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack

from torch_diode.files.atomic import write_bytes
from torch_diode.files.file_errors import naming_file
from torch_diode.types.errors import InvalidValueError


def is_msgpack(path: str | os.PathLike[str]) -> bool:
    """True for a file whose name says that it is MessagePack."""
    return Path(path).suffix.lower() == ".msgpack"


def read_msgpack(path: str | os.PathLike[str], parse: Callable[[Any], Any] | None = None) -> Any:
    """The content of a MessagePack file, or what `parse` makes of it; errors name the file."""
    with naming_file(path):
        data = loads(Path(path).read_bytes())
        return parse(data) if parse else data


def write_msgpack(path: str | os.PathLike[str], data: Any) -> None:
    """Write `data` as a MessagePack file; fractions in single precision."""
    write_bytes(path, msgpack.packb(data, use_single_float=True))


def loads(data: bytes) -> Any:
    """Parse plain MessagePack; a length beyond the file's own is refused before allocation."""
    try:
        return msgpack.unpackb(data, strict_map_key=True, ext_hook=_no_extension)
    except InvalidValueError:
        raise
    except UnicodeDecodeError as fault:
        raise InvalidValueError(f"got a text that is not UTF-8 ({fault.reason})") from None
    except (ValueError, msgpack.UnpackException, TypeError) as fault:
        kind = type(fault).__name__
        raise InvalidValueError(f"not MessagePack: {kind}: {fault!s:.120}") from None


def _no_extension(code: int, data: bytes) -> Any:
    raise InvalidValueError(f"got extension type {code}; expected plain data only")
