"""The watch over a CPU, with real load from other processes."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torch_diode.collection.timers.cpu_load import CpuWatch

BUSY = "while True: pass"


@contextlib.contextmanager
def busy_processes(count: int):
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the load is read from /proc")
def test_other_programs_are_noticed():
    watch = CpuWatch()
    with busy_processes(os.cpu_count() or 1):
        time.sleep(0.3)
        watch.restart()
        time.sleep(0.5)
        assert watch.disturbed()
    assert "programs use" in watch.reason or "usual time" in watch.reason


def test_a_machine_that_slept_is_noticed(monkeypatch):
    watch = CpuWatch()
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 60)
    monkeypatch.setattr(watch, "_slow_reference", str)
    assert watch.disturbed()
    assert watch.reason == "the machine slept"
