"""Worker processes end with a killed collector."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torch_diode.collection.workers.parent_death import die_with_parent

ROOT = Path(__file__).resolve().parents[3]
COLLECTOR = """
import signal, sys, time
from torch_diode.collection.workers.pool import WorkerPool

def stubborn(progress):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    def answer(seconds):
        time.sleep(seconds)
    return answer

pool = WorkerPool([stubborn, stubborn])
pool.submit(0, [600])
pool.start()
print(*pool.pids(), flush=True)
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux")
def test_workers_end_when_the_collector_is_killed():
    collector = subprocess.Popen(
        [sys.executable, "-c", COLLECTOR], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    pids = [int(pid) for pid in collector.stdout.readline().split()]
    assert len(pids) == 2
    assert all(is_alive(pid) for pid in pids)
    time.sleep(0.2)
    collector.send_signal(signal.SIGKILL)
    collector.wait()
    deadline = time.monotonic() + 20
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))


def test_a_worker_whose_parent_has_ended_exits_at_once():
    child = os.fork()
    if child == 0:
        die_with_parent(os.getppid() + 1)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
