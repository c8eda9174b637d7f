"""Termination of worker processes together with their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, even by SIGKILL; Linux only.

    A worker inside a long compile or launch would not notice a closed pipe for minutes, and block
    cores and a GPU that the next run needs.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent ended before the call above.
        os._exit(0)
