"""Limit of numpy's matrix products to one thread.

Those of a ranking take a tenth of a millisecond each. Spreading them over threads gains little, and
on busy cores, as while kernels compile, waiting for the threads takes a hundred times longer.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let OpenBLAS use the calling thread alone; other libraries are unaffected.

    The setting is the process's, so the last user to leave restores it: threadpoolctl's own context
    would restore what it found, which may be another user's limit.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _openblas().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


@lru_cache(maxsize=1)
def _openblas() -> Any:
    """Controller of OpenBLAS, found once: the search takes 10 ms, a limit 0.01 ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(internal_api="openblas")
