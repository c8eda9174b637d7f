"""Atomic writes: a file is written whole or not at all, and replaces another only if it may."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from torch_diode.files.file_errors import naming_file
from torch_diode.types.errors import FileFaultError

STDOUT = 1
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": STDOUT, "/dev/stderr": 2}
_DESCRIPTORS = (Path("/dev/fd"), Path("/proc/self/fd"))
"""Directories whose entries are this process's open files, by number."""


@contextmanager
def replacing(path: str | os.PathLike[str], overwrite: bool = True) -> Iterator[Path]:
    """A temporary path beside `path`, which becomes `path` when the block ends without an error.

    Without `overwrite` an existing file is refused, before the block and again at its end, where
    another process may have made one. The name starts with a dot and ends in `.tmp`, so that
    readers of the directory skip what a killed writer left behind. A link is kept and its target
    replaced; a device or a pipe is not replaced but written to.
    """
    refuse_existing(path, overwrite)
    with naming_file(path):
        if _is_stream(Path(path)):
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder) / "written"
                with (Path(folder) / "written").open("rb") as source, _sink(Path(path)) as sink:
                    shutil.copyfileobj(source, sink)
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
        temporary.touch(exist_ok=False)  # with the permissions any new file has
        try:
            yield temporary
            _commit(temporary, target, overwrite)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def refuse_existing(path: str | os.PathLike[str], overwrite: bool, remedy: str = "") -> None:
    """Raise where a file exists that may not be overwritten; commands that take long call this
    first. A device or a pipe is no such file: it is written to."""
    with naming_file(path):
        if not overwrite and _exists(Path(path)) and not _is_stream(Path(path)):
            remedy = remedy or "choose another name or give --overwrite"
            raise FileFaultError(f"{path}: exists already; {remedy}")


def _exists(path: Path) -> bool:
    """True for a file or its link; unlike `Path.exists`, a link to itself raises."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_stream(path: Path) -> bool:
    if not _exists(path):
        return False
    if path.is_dir():
        raise IsADirectoryError
    return not path.is_file() or descriptor(path) is not None


def descriptor(path: str | os.PathLike[str]) -> int | None:
    """The number of the open file that a path such as /dev/stdout names; None for other paths."""
    named = Path(path)
    if named.parent in _DESCRIPTORS and named.name.isdecimal():
        return int(named.name)
    return _STREAMS.get(str(named))


def _sink(path: Path) -> BinaryIO:
    # Opening an open file by its name would truncate it.
    number = descriptor(path)
    if number is None:
        return path.open("wb")
    if sys.stdout is not None:
        sys.stdout.flush()
    return os.fdopen(os.dup(number), "wb")


def _commit(temporary: Path, target: Path, overwrite: bool) -> None:
    # Flush before renaming: after a power cut, the name must not refer to missing bytes.
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    if not overwrite:
        # Fails where a file has come to be there; some file systems have no hard links.
        with contextlib.suppress(OSError):
            os.link(temporary, target)
            return
        refuse_existing(target, overwrite)
    temporary.replace(target)


def write_text(path: str | os.PathLike[str], text: str, overwrite: bool = True) -> None:
    """Write `text` to a file atomically."""
    with replacing(path, overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(
    path: str | os.PathLike[str], data: bytes | bytearray, overwrite: bool = True
) -> None:
    """Write `data` to a file atomically."""
    with replacing(path, overwrite) as temporary:
        temporary.write_bytes(data)
