"""One thread for numpy's matrix products.

Those of a ranking are done in a tenth of a millisecond each. A library that spreads them over
threads gains little, and where all cores are busy, as they are while kernels compile, it waits for
its threads a hundred times longer than the product takes.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

_FORMS = ("scipy_openblas_{}64_", "openblas_{}64_", "openblas_{}")

_lock = threading.Lock()
_inside = 0
_before = 0


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """OpenBLAS uses the calling thread alone; with another library nothing changes.

    The setting is the process's own, so the last to leave puts it back, whoever came first.
    """
    global _inside, _before
    found = _openblas()
    if found is None:
        yield
        return
    get, put = found
    with _lock:
        if _inside == 0:
            _before = get()
            if _before != 1:
                put(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _before != 1:
                put(_before)


@lru_cache(maxsize=1)
def _openblas() -> tuple[Any, Any] | None:
    """OpenBLAS's functions to ask and set the number of threads, as numpy is linked with them."""
    # numpy 1 had it elsewhere, and the functions are found through what it is linked with.
    core: Any = getattr(np, "_core", None) or np.core
    try:
        library = ctypes.CDLL(core._multiarray_umath.__file__)
    except (AttributeError, OSError):
        return None
    for form in _FORMS:
        get, put = (form.format(f"{verb}_num_threads") for verb in ("get", "set"))
        if hasattr(library, get) and hasattr(library, put):
            return getattr(library, get), getattr(library, put)
    return None
