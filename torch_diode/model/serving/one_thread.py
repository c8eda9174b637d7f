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
from functools import lru_cache
from typing import Any

import numpy as np

_SYMBOLS = ("scipy_openblas_{}64_", "openblas_{}64_", "openblas_{}")

_lock = threading.Lock()
_users = 0
_before = 0


class one_thread(contextlib.ContextDecorator):  # noqa: N801  used like a function
    """Let OpenBLAS use the calling thread alone; other libraries are unaffected.

    The setting is the process's, so the last user to leave restores it.
    """

    def __enter__(self) -> None:
        global _users, _before
        functions = _openblas()
        if functions is None:
            return
        get, put = functions
        with _lock:
            if _users == 0:
                _before = get()
                if _before != 1:
                    put(1)
            _users += 1

    def __exit__(self, *_: object) -> None:
        global _users
        functions = _openblas()
        if functions is None:
            return
        with _lock:
            _users -= 1
            if _users == 0 and _before != 1:
                functions[1](_before)


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
