"""A bounded cache, shared among threads."""

from __future__ import annotations

import threading
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(dict[Key, Value]):
    """A dict of at most `size` entries: the entry that would exceed it empties the dict first.

    Reading needs no lock, and writing with `cache[key] = value` takes one. Where keys depend on
    arguments alone, `functools.lru_cache` does the same.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._lock = threading.Lock()

    def __setitem__(self, key: Key, value: Value) -> None:
        with self._lock:
            if len(self) >= self.size and key not in self:
                self.clear()
            super().__setitem__(key, value)
