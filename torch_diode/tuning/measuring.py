"""Measuring a plan: its tasks are timed, heaviest first, and kept with those of earlier runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torch_diode.collection.devices import Devices
from torch_diode.collection.plan import Group
from torch_diode.collection.store.output import PartialOutput, WatchedStore, check_writable
from torch_diode.collection.workers.scheduler import TimedProblem
from torch_diode.files.datasets import read_dataset
from torch_diode.files.tables import read_table, write_table
from torch_diode.hardware.versions import cpu_libraries, versions
from torch_diode.heuristics.tuned import TunedTable
from torch_diode.integration.hooks.torch_compat import dataset_provenance
from torch_diode.integration.tuned_tables import TunedFolder
from torch_diode.toolkit.collecting.local_sweep import (
    LocalSweep,
    TimingProgress,
    explain_full_disk,
    kernel_library,
)
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.tuning.plan import Plan, Task
from torch_diode.types.candidate import ATEN
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import FileFaultError, HardwareMismatchError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table

if TYPE_CHECKING:
    from torch_diode.collection.cluster.driver import RayCluster

BAND = 0.01
"""Relative error of the best time at which measuring a problem ends."""
_MOST_ENTRIES = 16
"""Candidates kept in the table per problem of a GPU, which has thousands."""


class Measuring:
    """Measures for one hardware; what is kept is read on construction."""

    def __init__(self, folder: TunedFolder, progress: ProgressCallback) -> None:
        self.folder, self.progress = folder, progress
        self.kept = self._read() if folder.timings.exists() else None
        self.notes: list[str] = []
        self.left_out: list[MMShape] = []

    def _read(self) -> Dataset:
        try:
            return read_dataset(self.folder.timings)
        except FileFaultError as fault:
            remedy = f"`torch-diode tune --forget {self.folder.name}` deletes what is kept there"
            raise FileFaultError(f"{fault}; {remedy}") from fault.__cause__

    def resume(self) -> None:
        """Take in what a run that was killed has measured, or was about to write."""
        check_writable(self.folder.timings, overwrite=True, option="TORCH_DIODE_HOME")
        if self._parts.exists():
            self._store(lambda _: None)
        if self.kept is None:
            return
        wanted = table_of(self.kept)
        with suppress(FileFaultError):
            if read_table(self.folder.table).rows == wanted.rows:
                return
        write_table(wanted, self.folder.table)

    def run(
        self,
        plan: Plan,
        tasks: Sequence[Task],
        devices: Devices,
        *,
        quick: bool,
        minutes: float | None,
        seed: int,
        ray: str | None = None,
    ) -> None:
        """Time these until done or the minutes are up, here or on a Ray cluster; Ctrl-C keeps what
        is there."""
        from torch_diode.collection.workers.timing_worker import TimingSettings

        chip = plan.hardware
        libraries_only = all(c.config is None for task in tasks for c in task.candidates)
        library = kernel_library(chip, libraries_only, self.notes.append)
        # A group each, so that they are timed in this order.
        groups = [Group.of(t.problem.key, [(t.problem, t.candidates)], library) for t in tasks]
        band = None if quick else BAND
        settings = TimingSettings(library, chip, versions(), seed, band)
        sweep = LocalSweep(devices, self.progress, self.notes.append)
        deadline = time.monotonic() + 60 * minutes if minutes is not None else float("inf")

        def measure(store: WatchedStore) -> None:
            store.on_append = TimingProgress(len(tasks), 0, self.progress)
            if ray is None:
                sweep.run(groups, settings, store, self.left_out, deadline)
                return
            with closing(cluster_of(ray, chip, self._message)) as cluster:
                keep = partial(TimedProblem.keep, store=store, left_out=self.left_out)
                cluster.time(groups, settings, keep, deadline)

        self._store(measure)

    def _message(self, text: str) -> None:
        self.progress(Progress(message=text))

    @property
    def _parts(self) -> Path:
        return self.folder.timings.with_name(f"{self.folder.timings.name}.parts")

    def _store(self, measure: Callable[[WatchedStore], None]) -> None:
        """Call with a store, then keep what is in it, however the call ends."""
        parts = PartialOutput(self.folder.timings, {})
        try:
            try:
                store = parts.store(self._provenance())
                with store:
                    measure(store)
            finally:
                if any(parts.directory.glob("*.parquet")):
                    self.kept = parts.finish("parquet", self.kept)
                    write_table(table_of(self.kept), self.folder.table)
        except KeyboardInterrupt:
            self.progress(Progress(message="What is measured is kept; the same command continues"))
            raise
        except FileFaultError as fault:
            raise explain_full_disk(fault, parts.directory) from fault.__cause__
        finally:
            parts.close()

    def _provenance(self) -> dict[str, tuple[str, ...]]:
        if self.folder.threads:
            return dataset_provenance(templates=False, **cpu_libraries())
        return dataset_provenance()

    def table(self) -> TunedTable | None:
        """The table of what is kept."""
        return None if self.kept is None else TunedTable(table_of(self.kept))


def cluster_of(address: str, chip: Hardware, note: Callable[[str], None]) -> RayCluster:
    """The machines of a Ray cluster, which must be like this one: what they measure is kept for
    it."""
    from torch_diode.collection.cluster.driver import RayCluster
    from torch_diode.collection.cluster.node import NodeSettings

    cluster = RayCluster(address, NodeSettings(chip.kind), note)
    ready = cluster.ready
    got = (ready.hardware.name, ready.hardware.units, ready.versions["torch"])
    expected = (chip.name, chip.units, versions()["torch"])
    if got == expected:
        return cluster
    cluster.close()
    raise HardwareMismatchError(
        "--ray: got machines of {} with {} cores and torch {}; expected {} with {} and torch {}, "
        "as here: what they measure is kept for this machine".format(*got, *expected)
    )


def table_of(dataset: Dataset) -> Table:
    """All candidates of a CPU's problems, the best of a GPU's and ATen, with their times."""
    whole = Table.from_dataset(dataset, k=len(dataset))
    rows = tuple(
        (
            hardware,
            problem,
            tuple(
                entry
                for place, entry in enumerate(entries)
                if place < _MOST_ENTRIES or entry.candidate.template == ATEN
            ),
        )
        for hardware, problem, entries in whole
    )
    return Table(rows, whole.provenance)
