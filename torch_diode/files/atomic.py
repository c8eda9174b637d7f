"""Writing a file so that it is there whole or not at all."""

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

STDOUT = 1
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": STDOUT, "/dev/stderr": 2}
_DESCRIPTORS = (Path("/dev/fd"), Path("/proc/self/fd"))
"""What lies in these is an open file of ours, by its number."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`; it takes `path`'s place when the block ends well.

    The name starts with a dot and ends in `.tmp`, so that a reader of the directory passes over
    what a killed writer left behind. A link stays, and what it leads to is replaced; a device or a
    pipe is no file to be replaced, and written to.
    """
    with naming_file(path):
        if _is_written_to(Path(path)):
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
            _settle(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def _is_written_to(path: Path) -> bool:
    if path.is_dir():
        raise IsADirectoryError
    return path.exists() and (not path.is_file() or descriptor(path) is not None)


def descriptor(path: str | os.PathLike[str]) -> int | None:
    """The open file of this process that a path names, such as /dev/stdout; None for any other."""
    named = Path(path)
    if named.parent in _DESCRIPTORS and named.name.isdecimal():
        return int(named.name)
    return _STREAMS.get(str(named))


def _sink(path: Path) -> BinaryIO:
    """Opened by its name, an open file would be emptied, and written from its beginning."""
    number = descriptor(path)
    if number is None:
        return path.open("wb")
    if sys.stdout is not None:
        sys.stdout.flush()
    return os.fdopen(os.dup(number), "wb")


def _settle(temporary: Path, target: Path) -> None:
    """Put the bytes on disk before the name: after a power cut a name must not outlive them."""
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    temporary.replace(target)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`text` as a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | os.PathLike[str], data: bytes | bytearray) -> None:
    """`data` as a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
