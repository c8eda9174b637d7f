"""A function in a new Python interpreter, which has neither a GPU nor threads of this process.

Unlike the `spawn` of multiprocessing it does not import the caller's main program again: that may
be a script that collects as soon as it is imported.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from torch_diode.collection.workers.interpreter import main; main(int(sys.argv[1]))"
)


class Interpreter(subprocess.Popen[bytes]):
    """Calls a function with the other end of its connection, with this process's paths; torch-diode
    does not register itself there. Ctrl-C does not reach it."""

    def __init__(self, function: Callable[[Connection], object]) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        with theirs:
            super().__init__(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "TORCH_DIODE": "0"},
                start_new_session=True,
            )
        # If it has ended already, the next read says so.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(function)

    @property
    def exitcode(self) -> int | None:
        """As of a forked process."""
        return self.returncode

    def join(self) -> None:
        """As of a forked process."""
        self.wait()


def main(number: int) -> None:
    """Call the function that is sent to this file descriptor."""
    connection = Connection(number)
    with suppress(EOFError):
        connection.recv()(connection)
