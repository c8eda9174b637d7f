"""The one form of error that every reader of files has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torch_diode.types.errors import FileFaultError


def refusal(read: Callable[[Path], Any], file: Path) -> str:
    """The message of a file that must be refused: one line that starts with the file's name."""
    with pytest.raises(FileFaultError) as fault:
        read(file)
    message = str(fault.value)
    assert message.startswith(f"{file}: ")
    assert "\n" not in message
    return message


def content_refusal(read: Callable[[Path], Any], file: Path, content: str | bytes) -> str:
    """The message where a file has this content."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return refusal(read, file)
