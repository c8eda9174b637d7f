"""What Ray runs on a machine: it starts the machine's own process and carries its messages."""

from __future__ import annotations

import multiprocessing
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any


class NodeGoneError(RuntimeError):
    """The machine's process ended, and its last problems with it."""


class ClusterWorker:
    """An actor, one for each machine, which it has to itself."""

    def __init__(self) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        # Not `-m`: what it sends would be of the module `__main__`, which nobody else has.
        program = "from torch_diode.collection.cluster.node import main; main()"
        subprocess.Popen(  # noqa: S603 our own module
            [sys.executable, "-c", program, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "TORCH_DIODE": "0"},
        )
        theirs.close()
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Read all the time: two that send to each other and do not read would wait for ever.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(self._connection.recv())
        except (EOFError, OSError):
            return
        finally:
            # Whatever it ended with: who waits must hear of it.
            self._inbox.put(NodeGoneError("the timing process of this node has ended"))

    def exchange(self, messages: Sequence[Any], seconds: float) -> list[Any]:
        """Pass messages on; what has come back, at most so long waited for."""
        try:
            for message in messages:
                self._connection.send(message)
        except OSError:
            raise NodeGoneError("the timing process of this node has ended") from None
        found = []
        try:
            found.append(self._inbox.get(timeout=seconds))
            while not isinstance(found[-1], NodeGoneError):
                found.append(self._inbox.get_nowait())
        except queue.Empty:
            return found
        gone = found.pop()
        if not found:
            raise gone
        self._inbox.put(gone)
        return found
