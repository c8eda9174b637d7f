"""Errors of files: one sentence that names the file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch_diode.types.errors import FileFaultError, InvalidValueError


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors in the file's content or from the file system into ones that name `path`."""
    try:
        yield
    except InvalidValueError as fault:
        raise FileFaultError(f"{path}: {fault}") from fault
    except RecursionError as fault:
        raise FileFaultError(f"{path}: nested too deeply; expected a few levels") from fault
    except MemoryError as fault:
        raise FileFaultError(f"{path}: does not fit into memory; is it damaged?") from fault
    except FileNotFoundError as fault:
        raise FileFaultError(f"{path}: no such file; check the path") from fault
    except IsADirectoryError as fault:
        raise FileFaultError(f"{path}: got a directory; expected a file") from fault
    except OSError as fault:
        raise FileFaultError(f"{path}: {fault.strerror or fault}") from fault


def refuse_device(path: str | os.PathLike[str]) -> None:
    """Raise for a device such as /dev/zero, which may be read without end."""
    with naming_file(path):
        mode = Path(path).stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise FileFaultError(f"{path}: got a device; expected a file")


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """The content of a file, which must have an end."""
    refuse_device(path)
    return Path(path).read_bytes()


def existing(path: str | os.PathLike[str]) -> Path:
    """`path` as a `Path`, which must exist."""
    with naming_file(path):
        exists = Path(path).exists()
    if not exists:
        raise FileFaultError(f"{path}: no such file or directory; check the path")
    return Path(path)
