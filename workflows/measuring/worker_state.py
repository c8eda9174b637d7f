"""Start time of this process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def seconds_alive() -> float:
    """Seconds since this process was started, imports included.

    Outside Linux, the CPU time spent so far.
    """
    if sys.platform != "linux":
        return time.process_time()
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
