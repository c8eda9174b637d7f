"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch_diode.files.faults import naming

_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""What lies in these is somebody's open file, such as standard output, whatever it leads to."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`; it takes `path`'s place when the block ends well.

    The name starts with a dot and ends in `.tmp`, so that a reader of the directory passes over
    what a killed writer left behind. A link stays, and what it leads to is replaced; a device or a
    pipe is no file to be replaced, and written to.
    """
    with naming(path):
        if _is_written_to(Path(path)):
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder) / "written"
                with (Path(folder) / "written").open("rb") as source, Path(path).open("wb") as sink:
                    shutil.copyfileobj(source, sink)
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _settle(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def _is_written_to(path: Path) -> bool:
    if path.is_dir():
        raise IsADirectoryError
    return path.exists() and (not path.is_file() or path.parent in _STREAMS)


def _settle(temporary: Path, target: Path) -> None:
    """Put the bytes on disk before the name: after a power cut a name must not outlive them."""
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    temporary.replace(target)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`text` as a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | os.PathLike[str], data: bytes | bytearray) -> None:
    """`data` as a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
