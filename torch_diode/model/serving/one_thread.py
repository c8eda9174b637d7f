"""Limit of numpy's matrix products to one thread.

Those of a ranking take a tenth of a millisecond each. Spreading them over threads gains little, and
on busy cores, as while kernels compile, waiting for the threads takes a hundred times longer.
threadpoolctl (3.7, 3.8) does not serve: after limits of two threads that overlap, the process is
left with one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

_SYMBOLS = ("scipy_openblas_{}64_", "openblas_{}64_", "openblas_{}")

_lock = threading.Lock()
_users = 0
_before = 0


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let OpenBLAS use the calling thread alone; other libraries are unaffected.

    The setting is the process's, so the last user to leave restores it.
    """
    global _users, _before
    functions = _openblas()
    if functions is None:
        yield
        return
    get, put = functions
    with _lock:
        if _users == 0:
            _before = get()
            if _before != 1:
                put(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _before != 1:
                put(_before)


@lru_cache(maxsize=1)
def _openblas() -> tuple[Any, Any] | None:
    """Functions of the OpenBLAS numpy is linked with that get and set the number of threads."""
    core: Any = getattr(np, "_core", None) or np.core  # numpy 1 has the latter
    try:
        library = ctypes.CDLL(core._multiarray_umath.__file__)
    except (AttributeError, OSError):
        return None
    for symbol in _SYMBOLS:
        get, put = (symbol.format(f"{verb}_num_threads") for verb in ("get", "set"))
        if hasattr(library, get) and hasattr(library, put):
            return getattr(library, get), getattr(library, put)
    return None
