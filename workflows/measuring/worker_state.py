"""When this process was started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def seconds_alive() -> float:
    """How long ago this process was started: importing torch is part of the time a run is given.

    Where the system does not tell (it is asked in Linux's way), the CPU time spent so far.
    """
    if sys.platform != "linux":
        return time.process_time()
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
