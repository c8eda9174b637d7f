"""MessagePack: JSON's tree in fewer bytes. No extension types, so nothing but plain data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgpack

from torch_diode.files.atomic import write_bytes
from torch_diode.files.file_errors import naming_file
from torch_diode.types.errors import InvalidValueError


def read_msgpack(path: str | os.PathLike[str]) -> Any:
    """The content of a MessagePack file."""
    with naming_file(path):
        return loads(Path(path).read_bytes())


def write_msgpack(path: str | os.PathLike[str], data: Any) -> None:
    """`data` as a MessagePack file; numbers with a fraction in single precision."""
    write_bytes(path, msgpack.packb(data, use_single_float=True))


def loads(data: bytes) -> Any:
    """Plain MessagePack; a length beyond the file's own is refused before anything is made."""
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
