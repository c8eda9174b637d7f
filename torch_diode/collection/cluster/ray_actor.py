"""Ray actor of a machine: starts the machine's main process and relays its messages."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Any

from torch_diode.collection.workers.interpreter import Interpreter


class NodeGoneError(RuntimeError):
    """The machine's main process ended."""


class ClusterWorker:
    """Actor that reserves a machine, one per machine."""

    def __init__(self) -> None:
        # Only where the actor runs: the driver needs neither timers nor kernels.
        from torch_diode.collection.cluster import node

        self._node = Interpreter(node.main)
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Reads all the time: two processes that send without reading would deadlock.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(self._node.connection.recv())
        except (EOFError, OSError):
            return
        finally:
            # However it ended: `exchange` must not wait for it.
            self._inbox.put(NodeGoneError("the timing process of this node has ended"))

    def exchange(self, messages: Sequence[Any], seconds: float) -> list[Any]:
        """Send messages; return those received, after waiting up to `seconds` for the first."""
        try:
            for message in messages:
                self._node.connection.send(message)
        except OSError:
            raise NodeGoneError("the timing process of this node has ended") from None
        received = []
        try:
            received.append(self._inbox.get(timeout=seconds))
            while not isinstance(received[-1], NodeGoneError):
                received.append(self._inbox.get_nowait())
        except queue.Empty:
            return received
        gone = received.pop()
        if not received:
            raise gone
        self._inbox.put(gone)
        return received
