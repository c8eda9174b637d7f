"""Private caches of Inductor and Triton for one run."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_FOLDERS = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


@contextlib.contextmanager
def private_caches(kept: Path | None = None) -> Iterator[None]:
    """Use empty caches for the duration of the context, also in child processes, and delete them
    afterwards; with `kept`, use that folder and keep it."""
    with contextlib.ExitStack() as stack:
        if kept is None:
            # Children of killed processes may still write there for a moment.
            fresh = tempfile.TemporaryDirectory(prefix="diode-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(fresh))
        else:
            folder = kept.resolve()
        for name, part in _FOLDERS.items():
            stack.callback(_put, name, os.environ.get(name))
            _put(name, str(folder / part))
        yield


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
