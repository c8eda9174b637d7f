"""A sweep on this machine's own devices: what a collection and tuning share."""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch_diode.collection.devices import CPU, Devices
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import Group
from torch_diode.collection.store.journal import TimingStore
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import FileFaultError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

if TYPE_CHECKING:
    from torch_diode.collection.workers.timing_worker import TimingSettings

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class LocalSweep:
    """Compiles and times groups of problems; `note` gets what a reader of the result must know."""

    devices: Devices
    progress: ProgressCallback
    note: Callable[[str], None]
    processes: int = 0
    """Compiling processes; 0 for as many as the machine allows."""

    def run(
        self,
        groups: Sequence[Group],
        settings: TimingSettings,
        store: TimingStore,
        left_out: list[MMShape],
        deadline: float = math.inf,
    ) -> None:
        """Until done, or until the deadline (`time.monotonic`)."""
        from torch_diode.collection.cluster.node import compiling_processes
        from torch_diode.collection.sweep_run import SweepRun

        is_cpu = settings.hardware.kind == CPU
        sweep = SweepRun(groups, settings, self.devices.names, left_out=left_out)
        processes = self.processes or compiling_processes(is_cpu)
        # On a GPU kernels are compiled while others are timed, and the problems tell how far it is.
        report = self._report_compiled if is_cpu else _ignore
        sweep.run(store, processes, deadline, compiled=report)
        if sweep.lost:
            self.note(
                f"{len(sweep.lost):,} timing processes were lost ({sweep.lost[-1]}) and "
                "replaced; a kernel that did it is recorded as failed"
            )

    def _report_compiled(self, done: int, total: int) -> None:
        self.progress(Progress("Compiling", done, total, "kernels"))


def _ignore(*_: object) -> None:
    """Report nothing."""


def kernel_library(
    chip: Hardware, libraries_only: bool, note: Callable[[str], None]
) -> KernelLibrary | CpuKernels:
    """What renders and compiles the kernels of a chip; on a CPU those of the C++ template, where
    they are wanted and can be compiled."""
    if chip.kind != CPU:
        from torch_diode.integration.capture.template_source import template_source

        return KernelLibrary(template_source, chip.units)
    if libraries_only:
        return CpuKernels()
    from torch_diode.integration.cpu.build import build
    from torch_diode.integration.cpu.cpp_gemm import why_unavailable

    if reason := why_unavailable(chip):
        note(f"kernels of the C++ template left out: {reason}")
        return CpuKernels()
    return CpuKernels(build, chip.threads)


def explain_full_disk(fault: FileFaultError, kept_in: Path) -> FileFaultError:
    """The error with what is to be done, where a disk is full; any other as it is."""
    if not isinstance(fault.__cause__, OSError) or fault.__cause__.errno not in _DISK_FULL:
        return fault
    return FileFaultError(
        f"{fault}; all finished problems are kept in {kept_in}: free some space and run the same "
        "command again"
    )


class TimingProgress:
    """Reports every problem that is stored."""

    def __init__(self, total: int, done: int, progress: ProgressCallback) -> None:
        self.total, self.done, self.progress = total, done, progress
        self.timings = self.wrong = 0
        self._start = time.monotonic()
        self._report()

    def __call__(self, finished: Dataset) -> None:
        """Count a problem and report it."""
        self.done += 1
        self.timings += len(finished)
        self.wrong += finished.table.column("status").to_pylist().count("wrong")
        self._report()

    def _report(self) -> None:
        rate = self.timings / max(time.monotonic() - self._start, 1e-9)
        values = {"timings": self.timings, "timings/s": round(rate)}
        self.progress(Progress("Timing", self.done, self.total, "problems", values))
