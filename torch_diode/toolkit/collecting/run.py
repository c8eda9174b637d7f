"""One run of a collection: its device or cluster, its output, and the timing itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_diode.collection import BUSY_CPU, plan
from torch_diode.collection.devices import CPU, Devices, by_threads, find_devices
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import Group
from torch_diode.collection.store.journal import DISCARDED, TimingStore
from torch_diode.collection.store.output import (
    FINISHED,
    PartialOutput,
    check_finished,
    check_writable,
    output_file,
    settings_digest,
)
from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware.versions import cpu_libraries, versions
from torch_diode.toolkit.collecting.collect import CollectionResult, CollectOptions
from torch_diode.toolkit.collecting.local_sweep import (
    LocalSweep,
    TimingProgress,
    explain_full_disk,
    kernel_library,
)
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import FileFaultError, InvalidValueError, MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

if TYPE_CHECKING:
    from torch_diode.collection.cluster.driver import RayCluster

_TIMINGS = "diode_datasets/matmul"
_GROUPS_PER_MACHINE = 4


class CollectionRun:
    """A collection with its output and its devices checked, before the problems are chosen."""

    def __init__(
        self, output: str | os.PathLike[str], options: CollectOptions, progress: ProgressCallback
    ) -> None:
        self.options, self.progress = options, progress
        self.file, self._form = output_file(Path(output), options.format)
        check_writable(self.file, overwrite=True)  # one that is there may be finished
        if options.ray and options.method == "feedback":
            raise InvalidValueError(
                "--ray: got --method feedback; expected sweep, which is what machines share"
            )
        self._cluster: RayCluster | None = None
        self._versions: Mapping[str, str] = versions()
        self._libraries: Mapping[str, str] = {}
        self._wrong = 0
        self._left_out: list[MMShape] = []
        self._notes: list[str] = []
        if options.ray is not None:
            from torch_diode.collection.cluster.driver import RayCluster
            from torch_diode.collection.cluster.node import NodeSettings

            opening = NodeSettings(options.device, options.workers, options.processes)
            self._cluster = RayCluster(options.ray, opening, self._message)
            self.hardware = self._cluster.hardware
            self._versions = self._cluster.ready.versions
            self._libraries = self._cluster.ready.libraries
        else:
            _check_processes(options.processes)
            self._devices = _devices(options.device, options.workers)
            self.hardware = self._devices.hardware
            if self.hardware.kind == CPU:
                self._libraries = cpu_libraries()
        self._chips = by_threads(self.hardware, options.threads)
        self._check_method()

    def _check_method(self) -> None:
        if self.options.method == "feedback" and self.hardware.kind == CPU:
            raise MissingPartError(
                "feedback: got the CPU; expected a GPU, since on a CPU Inductor times only linears "
                "with constant weights, in a warm cache; use --method sweep"
            )
        if self.options.method == "sweep" and self.hardware.kind not in ("cuda", "cpu"):
            raise MissingPartError(
                f"sweep: got {self.hardware.name}; expected an NVIDIA chip; use --method feedback"
            )

    def __enter__(self) -> CollectionRun:
        return self

    def __exit__(self, *_: object) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def collect(
        self, command: str, problems: Sequence[MMShape], settings: Mapping[str, Any]
    ) -> CollectionResult:
        """Time the problems not timed yet and write one file of all.

        A rerun must agree in the command and the settings.
        """
        plan.check_problems(problems, self.hardware)
        settings = self._settings(command, problems, settings)
        if not self.options.overwrite and self.file.exists():
            check_finished(self.file, settings)
            PartialOutput(self.file, settings).remove()  # a kill may have left it
            self._message(f"{self.file}: collected already, with the same options")
            return CollectionResult(
                self.file, read_dataset(self.file), tuple(problems), reused=True
            )
        dataset = self._collect(PartialOutput(self.file, settings), problems, settings)
        self._report_discarded(dataset)
        return CollectionResult(
            self.file,
            dataset,
            tuple(problems),
            self._wrong,
            tuple(self._left_out),
            tuple(self._notes),
        )

    def _collect(
        self, parts: PartialOutput, problems: Sequence[MMShape], settings: Mapping[str, Any]
    ) -> Dataset:
        try:
            store = parts.store(self._provenance(settings))
            with store:
                done = store.done()
                left = {
                    chip: [p for p in problems if (chip.name, chip.threads, p) not in done]
                    for chip in self._chips
                }
                total = len(problems) * len(left)
                count = total - sum(map(len, left.values()))
                if count:
                    self._message(f"{parts.directory}: {count:,} problems are done")
                timed = TimingProgress(total, count, self.progress)
                store.on_append = timed
                for chip, undone in left.items():
                    if undone:
                        self._time(chip, undone, store)
                self._wrong = timed.wrong
                self._report_losses()
            return parts.finish(self._form, overwrite=self.options.overwrite)
        except KeyboardInterrupt:
            self._message(
                f"{parts.directory}: all finished problems kept; the same command continues"
            )
            raise
        except FileFaultError as fault:
            raise explain_full_disk(fault, parts.directory) from fault.__cause__
        finally:
            parts.close()

    def _message(self, text: str) -> None:
        self.progress(Progress(message=text))

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._message(text)

    def _provenance(self, settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        from torch_diode.integration.hooks.torch_compat import dataset_provenance

        # A cluster's machines may have another torch, with other templates, than this one.
        ours = self.hardware.kind != CPU and self._versions == versions()
        facts = {"seed": str(self.options.seed), FINISHED: settings_digest(settings)}
        if self.hardware.kind == CPU and os.environ.get(BUSY_CPU):
            facts["busy CPU"] = "accepted"
        return dataset_provenance(templates=ours, **facts, **self._libraries)

    def _settings(
        self, command: str, problems: Sequence[MMShape], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """All that a rerun has to agree in; last the problems themselves, whatever chose them."""
        keys = "\n".join(problem.key for problem in problems)
        threads = {"threads": [chip.threads for chip in self._chips if chip.threads]}
        return {
            "command": command,
            "hardware": self.hardware.name,
            **(threads if self.hardware.kind == CPU else {}),
            "method": self.options.method,
            "search-space": self.options.search_space,
            "seed": self.options.seed,
            **({} if self.options.noise is None else {"noise": self.options.noise}),
            **({"libraries": True} if self.options.libraries_only else {}),
            **settings,
            **self._versions,
            "problems": hashlib.sha256(keys.encode()).hexdigest()[:16],
        }

    def _time(self, chip: Hardware, problems: Sequence[MMShape], store: TimingStore) -> None:
        if self.options.method == "feedback":
            self._autotune(problems, store)
            return
        library = kernel_library(chip, self.options.libraries_only, self._note)
        rule = self._rule(chip, problems, library)
        groups = plan.plan(problems, rule, library, self._chunk(problems))
        self._report_plan(chip, problems, groups)
        from torch_diode.collection.workers.timing_worker import TimingSettings

        options = self.options
        settings = TimingSettings(library, chip, self._versions, options.seed, options.noise)
        if self._cluster is not None:
            self._cluster.time(groups, settings, lambda timed: timed.keep(store, self._left_out))
        else:
            sweep = LocalSweep(self._devices, self.progress, self._note, options.processes)
            sweep.run(groups, settings, store, self._left_out)

    def _chunk(self, problems: Sequence[MMShape]) -> int:
        """Problems per group; on a cluster few enough that every machine gets several groups."""
        if self.options.chunk_size or self._cluster is None:
            return self.options.chunk_size or plan.CHUNK
        share = len(problems) // (_GROUPS_PER_MACHINE * max(len(self._cluster), 1))
        return min(max(share, 1), plan.CHUNK)

    def _report_plan(
        self, chip: Hardware, problems: Sequence[MMShape], groups: Sequence[Group]
    ) -> None:
        kernels = len({spec for group in groups for spec in group.specs})
        if self._cluster is not None:
            count = len(self._cluster)
            where = f"{count} machine{'s' * (count != 1)} with {chip.name}"
        else:
            where = f"{len(self._devices.names)} × {chip.name}"
            if self._devices.others:
                self._note(f"left alone, of another kind: {', '.join(self._devices.others)}")
        if chip.threads:
            where += f", {chip.threads} thread{'s' * (chip.threads != 1)}"
        self._message(
            f"{len(problems):,} problems in {len(groups):,} groups, {kernels:,} kernels to "
            f"compile, on {where}"
        )

    def _report_losses(self) -> None:
        if self._wrong:
            self._note(f"{self._wrong:,} timings left out: their kernels gave a wrong result")
        if self._left_out:
            self._note(
                f"{len(self._left_out):,} problems left out, they end what times them: "
                f"{self._left_out[0]} first"
            )

    def _report_discarded(self, dataset: Dataset) -> None:
        (count,) = dataset.provenance[DISCARDED]
        if self.hardware.kind == CPU and int(count):
            self._note(
                f"{int(count):,} samples were discarded and taken again: the machine was busy, or "
                "slept, while they were taken"
            )

    def _rule(
        self, chip: Hardware, problems: Sequence[MMShape], library: KernelLibrary | CpuKernels
    ) -> plan.CandidateRule:
        if isinstance(library, CpuKernels) and not library.builds:
            exhaustive = plan.libraries(chip)
        else:
            exhaustive = plan.exhaustive(chip)
        if self.options.search_space == "EXHAUSTIVE":
            return exhaustive
        if chip.kind == CPU:
            return plan.listed(lambda _: Candidates.of([Candidate(ATEN)]), chip)
        if self._cluster is not None:
            # Nothing is timed here, and a process with threads should not be forked.
            lists = default_lists(problems, chip)
        else:
            lists = run_in_subprocess(default_lists, problems, chip)
        return plan.listed(lists.__getitem__, chip)

    def _autotune(self, problems: Sequence[MMShape], store: TimingStore) -> None:
        from torch_diode.integration import registration
        from torch_diode.integration.autotune.feedback import autotune

        # With torch-diode deciding, Inductor would time only the few candidates it is given.
        registration.disable()
        for problem in problems:
            device = self.options.device or "cuda"
            store.append(autotune(problem, device, self.options.search_space, clean=True))


def _check_processes(count: int) -> None:
    cores = os.cpu_count() or 1
    if count > cores:
        raise InvalidValueError(
            f"--processes: got {count}; expected at most {cores}, the cores of this machine: more "
            "would only wait for each other"
        )


def _devices(device: str | None, workers: int) -> Devices:
    try:
        return find_devices(device, workers)
    except MissingPartError as fault:
        raise MissingPartError(
            f"{fault}; collect where there is a GPU, give --device cpu to time a CPU, "
            f"or use the timings that come with torch-diode in {_TIMINGS}"
        ) from None


def default_lists(problems: Sequence[MMShape], hardware: Hardware) -> dict[MMShape, Candidates]:
    """Inductor's DEFAULT list of candidates for each problem."""
    from torch_diode.integration.capture.default_configs import default_candidates

    return {problem: default_candidates(problem, hardware) for problem in problems}
