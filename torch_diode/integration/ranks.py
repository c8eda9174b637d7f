"""Comparison of what the ranks of a distributed program decide with.

Ranks that decide differently compile different programs. Each rank writes what it uses into torch's
store before its first decision and reads what the others wrote: of two ranks that differ, the one
that comes later is told before it compiles, and the other one at its next graph.

Nothing waits for another rank: one that compiles nothing must not hold up the others.
"""

from __future__ import annotations

import sys
import threading
from typing import Any


class Ranks:
    """What this rank and those it has heard of decide with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: list[str] = []
        """The fingerprints so far: those of other ranks are compared one by one, since ranks do
        not change their settings at the same moment."""
        self._unread: set[int] = set()

    def compare(self, fingerprint: str, name: str) -> str:
        """A sentence that names a rank with another fingerprint; empty where there is none, where
        it was said before, or where the program is not distributed."""
        with self._lock:
            changed = self._written[-1:] != [fingerprint]
            if not changed and not self._unread:
                return ""
            try:
                return self._compare(fingerprint, name, changed)
            except RuntimeError:  # torch's errors of a store, such as one whose rank has ended
                self._unread = set()
                return ""

    def _compare(self, fingerprint: str, name: str, changed: bool) -> str:
        store, rank, count = _store()
        if count < 2:
            return ""
        if changed:
            self._written.append(fingerprint)
            self._unread = set(range(count)) - {rank}
            store.set(self._key(rank), f"{fingerprint} {name}")
        for other in sorted(self._unread):
            if not store.check([self._key(other)]):
                continue
            self._unread.discard(other)
            theirs, _, what = store.get(self._key(other)).decode().partition(" ")
            if theirs != fingerprint:
                self._unread = set()
                return (
                    f"rank {rank} decides with {name}, rank {other} with {what}: they may compile "
                    "different programs; give every rank the same model, table and settings"
                )
        return ""

    def _key(self, rank: int) -> str:
        return f"torch_diode/{len(self._written)}/{rank}"


def _store() -> tuple[Any, int, int]:
    """Torch's store, this rank, and the number of ranks; 1 where it is not distributed."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None, 0, 1
    store = distributed.distributed_c10d._get_default_store()
    return store, distributed.get_rank(), distributed.get_world_size()
