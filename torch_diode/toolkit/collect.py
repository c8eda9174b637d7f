"""What the collecting commands have in common: the devices, the output, and the run itself."""

from __future__ import annotations

import errno
import hashlib
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from torch_diode.cli.commands.data.stats import print_statistics
from torch_diode.cli.console.output import print_line
from torch_diode.cli.console.progress import CollectionProgress
from torch_diode.cli.options.collecting import How
from torch_diode.collection import plan
from torch_diode.collection.cluster.driver import RayCluster
from torch_diode.collection.cluster.node import NodeFinished, NodeSettings, compiling_processes
from torch_diode.collection.devices import Devices, find_devices
from torch_diode.collection.groups import Group
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.store.output import (
    FINISHED,
    PartialOutput,
    check_finished,
    check_writable,
    output_file,
    settings_digest,
)
from torch_diode.collection.sweep_run import GroupReport, SweepRun
from torch_diode.collection.timers.cpu import cpu_library
from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware.versions import versions
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import FileFaultError, InvalidValueError, MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_TIMINGS = "diode_datasets/matmul"
_FOREVER = 30 * 24 * 3600.0
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_GROUPS_A_MACHINE = 4
_LISTED = 1000
"""Problems that are listed when all are timed."""


@dataclass
class Collecting:
    """One command's run. Made first: what is wrong with output or device shows here.

    With `going_on`, an output that was finished with the same settings is left as it is.
    """

    command: str
    how: How
    form: str | None
    seed: int
    device: str | None
    going_on: bool = False
    hardware: Hardware = field(init=False)
    versions: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.file, self.form = output_file(self.how.output, self.form)
        check_writable(self.file, self.how.overwrite or self.going_on)
        if self.how.ray and self.how.method == "feedback":
            raise InvalidValueError(
                "--ray: got --method feedback; expected sweep, which is what machines share"
            )
        self.cluster: RayCluster | None = None
        self.versions = versions()
        if self.how.ray is not None:
            opening = NodeSettings(self.device, self.how.workers, self.how.processes)
            self.cluster = RayCluster(self.how.ray, opening, print_line)
            self.hardware, self.versions = self.cluster.hardware, self.cluster.hello.versions
        else:
            self.devices = _devices(self.device, self.how.workers)
            self.hardware = self.devices.hardware
        self._check_method()

    def _check_method(self) -> None:
        if self.how.method == "feedback" and self.hardware.kind == "cpu":
            raise MissingPartError(
                "feedback: got the CPU; expected a GPU, since Inductor has one choice for a "
                "matmul on the CPU and times none; use --method sweep"
            )
        if self.how.method == "sweep" and self.hardware.kind not in ("cuda", "cpu"):
            raise MissingPartError(
                f"sweep: got {self.hardware.name}; expected an NVIDIA chip; use --method feedback"
            )

    @classmethod
    def of(
        cls, command: str, context: typer.Context, how: How, going_on: bool = False
    ) -> Collecting:
        """With the program's global options."""
        given = context.obj
        return cls(command, how, given.form, given.seed or 0, given.device, going_on)

    def __enter__(self) -> Collecting:
        return self

    def __exit__(self, *_: object) -> None:
        if self.cluster is not None:
            self.cluster.close()

    def run(self, problems: Sequence[MMShape], options: Mapping[str, Any]) -> None:
        """Time what is not timed yet, make one file of it all, and show its statistics."""
        plan.check_problems(problems, self.hardware)
        settings = self._settings(problems, options)
        if self.going_on and not self.how.overwrite and self.file.exists():
            check_finished(self.file, settings)
            print_line(f"{self.file}: collected already, with the same options")
            return
        parts = PartialOutput(self.file, settings)
        try:
            store = parts.store(self._provenance(settings))
            with store:
                done = store.done()
                left = [p for p in problems if (self.hardware.name, p) not in done]
                if len(left) < len(problems):
                    print_line(
                        f"{parts.directory}: {len(problems) - len(left):,} problems are done"
                    )
                with CollectionProgress(len(problems), len(problems) - len(left)) as progress:
                    store.tell = progress.tell
                    self._time(left, store)
            dataset = parts.finish(self.form or "parquet")
        except KeyboardInterrupt:
            print_line(f"{parts.directory}: all finished problems kept; the same command continues")
            raise
        except FileFaultError as fault:
            if isinstance(fault.__cause__, OSError) and fault.__cause__.errno in _DISK_FULL:
                raise FileFaultError(
                    f"{fault}; all finished problems are kept in {parts.directory}: free some "
                    "space and run the same command again"
                ) from fault
            raise
        finally:
            parts.close()
        print_line(f"{self.file}: {self.file.stat().st_size / 1e6:.1f} MB")
        print_statistics(
            dataset, _LISTED, f"torch-diode stats {shlex.quote(str(self.file))} --limit 0"
        )

    def _provenance(self, settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        from torch_diode.integration.autotune.collected import dataset_provenance

        # A cluster's machines may have another torch, with other templates, than this one.
        ours = self.hardware.kind != "cpu" and self.versions == versions()
        facts = {"seed": str(self.seed), FINISHED: settings_digest(settings)}
        return dataset_provenance(templates=ours, **facts)

    def _settings(self, problems: Sequence[MMShape], options: Mapping[str, Any]) -> dict[str, Any]:
        """What a rerun has to agree in; last the problems themselves, whatever chose them."""
        keys = "\n".join(problem.key for problem in problems)
        return {
            "command": self.command,
            "hardware": self.hardware.name,
            "method": self.how.method,
            "search-space": self.how.search_space,
            "seed": self.seed,
            **options,
            **self.versions,
            "problems": hashlib.sha256(keys.encode()).hexdigest()[:16],
        }

    def _time(self, problems: Sequence[MMShape], store: TimingStore) -> None:
        if not problems:
            return
        if self.how.method == "feedback":
            self._autotune(problems, store)
            return
        library = self._library()
        groups = plan.plan(problems, self._rule(problems), library, self._chunk(problems))
        self._say_plan(problems, groups)
        if self.cluster is not None:
            self._time_on_cluster(self.cluster, groups, library, store)
        else:
            self._time_here(groups, library, store)

    def _library(self) -> KernelLibrary:
        if self.hardware.kind == "cpu":
            return cpu_library()
        from torch_diode.integration.capture.template_source import template_source

        return KernelLibrary(template_source, self.hardware.units)

    def _chunk(self, problems: Sequence[MMShape]) -> int:
        """Problems a group; on a cluster so few that every machine gets several groups."""
        if self.how.chunk_size or self.cluster is None:
            return self.how.chunk_size or plan.CHUNK
        share = len(problems) // (_GROUPS_A_MACHINE * max(len(self.cluster), 1))
        return min(max(share, 1), plan.CHUNK)

    def _say_plan(self, problems: Sequence[MMShape], groups: Sequence[Group]) -> None:
        kernels = len({spec for group in groups for spec in group.specs})
        if self.cluster is not None:
            count = len(self.cluster)
            where = f"{count} machine{'s' * (count != 1)} with {self.hardware.name}"
        else:
            where = f"{len(self.devices.names)} × {self.hardware.name}"
            if self.devices.others:
                print_line(f"left alone, of another kind: {', '.join(self.devices.others)}")
        print_line(
            f"{len(problems):,} problems in {len(groups):,} groups, {kernels:,} kernels to "
            f"compile, on {where}"
        )

    def _time_here(
        self, groups: Sequence[Group], library: KernelLibrary, store: TimingStore
    ) -> None:
        names = self.devices.names
        campaign = SweepRun(groups, library, self.hardware, self.versions, self.seed, devices=names)
        reports: list[GroupReport] = []
        processes = self.how.processes or compiling_processes()
        campaign.run(store, processes, time.monotonic() + _FOREVER, reports.append)
        if campaign.lost:
            print_line(
                f"{len(campaign.lost):,} timing processes were lost ({campaign.lost[-1]}) and "
                "replaced; a kernel that did it is recorded as failed"
            )
        _say_losses(sum(report.wrong for report in reports), campaign.left_out)

    def _time_on_cluster(
        self,
        cluster: RayCluster,
        groups: Sequence[Group],
        library: KernelLibrary,
        store: TimingStore,
    ) -> None:
        wrong, left_out = 0, []

        def keep(finished: NodeFinished) -> None:
            nonlocal wrong
            if finished.dataset is None:
                left_out.append(finished.problem)
            else:
                wrong += finished.dataset.table.column("status").to_pylist().count("wrong")
                store.append(finished.dataset)

        cluster.time(groups, TimingSettings(library, self.hardware, self.versions, self.seed), keep)
        _say_losses(wrong, left_out)

    def _rule(self, problems: Sequence[MMShape]) -> plan.CandidateRule:
        if self.hardware.kind == "cpu":
            return plan.vendor_only
        if self.how.search_space == "EXHAUSTIVE":
            return plan.exhaustive(self.hardware)
        if self.cluster is not None:
            # Nothing is timed here, and what has threads should not be forked.
            lists = default_lists(problems, self.hardware)
        else:
            lists = run_in_subprocess(default_lists, problems, self.hardware)
        return plan.listed(lists.__getitem__, self.hardware)

    def _autotune(self, problems: Sequence[MMShape], store: TimingStore) -> None:
        from torch_diode.integration import registration
        from torch_diode.integration.autotune.feedback import autotune

        # With torch-diode deciding, Inductor would time the few it is given.
        registration.disable()
        for problem in problems:
            device = self.device or "cuda"
            store.append(autotune(problem, device, self.how.search_space, clean=True))


def _devices(device: str | None, workers: int) -> Devices:
    try:
        return find_devices(device, workers)
    except MissingPartError as fault:
        raise MissingPartError(
            f"{fault}; collect where there is a GPU, give --device cpu to time ATen there, "
            f"or use the timings that come with torch-diode in {_TIMINGS}"
        ) from None


def default_lists(problems: Sequence[MMShape], hardware: Hardware) -> dict[MMShape, Candidates]:
    """Inductor's DEFAULT list of each problem."""
    from torch_diode.integration.capture.default_configs import default_candidates

    return {problem: default_candidates(problem, hardware) for problem in problems}


def _say_losses(wrong: int, left_out: Sequence[MMShape]) -> None:
    if wrong:
        print_line(f"{wrong:,} timings left out: their kernels gave a wrong result")
    if left_out:
        print_line(
            f"{len(left_out):,} problems left out, they end what times them: {left_out[0]} first"
        )
