"""Worker processes do not outlive the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, however that ends; Linux only.

    A killed parent runs no clean-up, and a worker inside a long compile or a launch would not
    notice a closed pipe for minutes, on cores and a GPU that the next run needs.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before the call above.
        os._exit(0)
