"""What the collecting commands have in common: the device, the output, and the run itself."""

from __future__ import annotations

import hashlib
import importlib.metadata
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import typer

from torch_diode.cli.output import say
from torch_diode.cli.progress import CollectionProgress
from torch_diode.cli.stats import print_statistics
from torch_diode.collection import plan
from torch_diode.collection.campaign import Campaign, GroupReport
from torch_diode.collection.cpu_timer import cpu_library, time_on_cpu
from torch_diode.collection.kernels import KernelLibrary
from torch_diode.collection.parts import Parts, check_writable, output_file
from torch_diode.collection.store import TimingStore
from torch_diode.hardware import detect
from torch_diode.types import checks
from torch_diode.types.candidates import Candidates
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

SEARCH_SPACES = ("EXHAUSTIVE", "DEFAULT")
METHODS = ("sweep", "feedback")
SEARCH_MODES = ("max-autotune",)
SHIPPED = "diode_datasets/matmul"
Result = TypeVar("Result")
_FOREVER = 30 * 24 * 3600.0


@dataclass(frozen=True)
class How:
    """How to collect, whatever is collected."""

    output: Path
    search_space: str = "EXHAUSTIVE"
    search_mode: str = "max-autotune"
    method: str = "sweep"
    chunk_size: int | None = None
    processes: int = 0
    overwrite: bool = False

    def __post_init__(self) -> None:
        checks.one_of("collect", "search-space", self.search_space, SEARCH_SPACES)
        checks.one_of("collect", "search-mode", self.search_mode, SEARCH_MODES)
        checks.one_of("collect", "method", self.method, METHODS)

    @property
    def chunk(self) -> int:
        """Problems a group."""
        return self.chunk_size or plan.CHUNK


@dataclass
class Collecting:
    """One command's run. Made first: what is wrong with output or device shows here."""

    command: str
    how: How
    form: str | None
    seed: int
    device: str | None
    hardware: Hardware = field(init=False)

    def __post_init__(self) -> None:
        self.file, self.form = output_file(self.how.output, self.form)
        check_writable(self.file, self.how.overwrite)
        self.hardware = find_hardware(self.device)
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
    def of(cls, command: str, context: typer.Context, how: How) -> Collecting:
        """With the program's global options."""
        return cls(command, how, context.obj.form, context.obj.seed or 0, context.obj.device)

    def run(self, problems: Sequence[MMShape], options: Mapping[str, Any]) -> None:
        """Time what is not timed yet, make one file of it all, and show its statistics."""
        plan.check_problems(problems, self.hardware)
        parts = Parts(self.file, self._settings(problems, options))
        today = {"collected": (time.strftime("%Y-%m-%d"),), "seed": (str(self.seed),)}
        try:
            store = parts.store(today)
            with store:
                done = store.done()
                left = [p for p in problems if (self.hardware.name, p) not in done]
                if len(left) < len(problems):
                    say(f"{parts.directory}: {len(problems) - len(left):,} problems are done")
                with CollectionProgress(len(problems), len(problems) - len(left)) as progress:
                    store.tell = progress.tell
                    self._time(left, store)
            dataset = parts.finish(self.form or "parquet")
        except KeyboardInterrupt:
            say(f"{parts.directory}: all finished problems kept; the same command continues")
            raise
        say(f"{self.file}: {self.file.stat().st_size / 1e6:.1f} MB")
        print_statistics(dataset)

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
            **releases(),
            "problems": hashlib.sha256(keys.encode()).hexdigest()[:16],
        }

    def _time(self, problems: Sequence[MMShape], store: TimingStore) -> None:
        if not problems:
            return
        if self.hardware.kind == "cpu":
            groups = plan.plan(problems, plan.vendor_only, cpu_library(), self.how.chunk)
            time_on_cpu(groups, self.hardware, releases(), store, self.seed)
        elif self.how.method == "feedback":
            self._autotune(problems, store)
        else:
            self._sweep(problems, store)

    def _sweep(self, problems: Sequence[MMShape], store: TimingStore) -> None:
        from torch_diode.integration.template_source import template_source

        _show_only(self.device)
        library = KernelLibrary(template_source, self.hardware.units)
        groups = plan.plan(
            problems, self._rule(problems), library, self.how.chunk_size or plan.CHUNK
        )
        kernels = len({spec for group in groups for spec in group.specs})
        say(f"{len(problems):,} problems in {len(groups):,} groups, {kernels:,} kernels to compile")
        campaign = Campaign(groups, library, self.hardware, releases(), self.seed)
        reports: list[GroupReport] = []
        processes = self.how.processes or max((os.cpu_count() or 2) - 2, 1)
        campaign.run(store, processes, time.monotonic() + _FOREVER, reports.append)
        wrong = sum(report.wrong for report in reports)
        if wrong:
            say(f"{wrong:,} timings left out: their kernels gave a wrong result")

    def _rule(self, problems: Sequence[MMShape]) -> plan.CandidateRule:
        if self.how.search_space == "EXHAUSTIVE":
            return plan.exhaustive(self.hardware)
        lists = apart(default_lists, problems, self.hardware)
        return plan.listed(lists.__getitem__, self.hardware)

    def _autotune(self, problems: Sequence[MMShape], store: TimingStore) -> None:
        from torch_diode.integration import registration
        from torch_diode.integration.feedback import autotune

        # With torch-diode deciding, Inductor would time the few it is given.
        registration.disable()
        for problem in problems:
            store.append(autotune(problem, self.device or "cuda", self.how.search_space))


def find_hardware(device: str | None) -> Hardware:
    """The chip to collect on, asked in another process: this one must not touch CUDA before it
    has forked those that compile."""
    if device == "cpu":
        return detect(device)
    try:
        return apart(detect, device or "cuda")
    except MissingPartError as fault:
        raise MissingPartError(
            f"{fault}; collect where there is a GPU, give --device cpu to time ATen there, "
            f"or use the timings that come with torch-diode in {SHIPPED}"
        ) from None


def apart(function: Callable[..., Result], *arguments: Any) -> Result:
    """What a function returns, called in a forked process; its errors are raised here."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, arguments)


def default_lists(problems: Sequence[MMShape], hardware: Hardware) -> dict[MMShape, Candidates]:
    """Inductor's DEFAULT list of each problem."""
    from torch_diode.integration.default_configs import default_candidates

    return {problem: default_candidates(problem, hardware) for problem in problems}


def releases() -> dict[str, str]:
    """What the timings are made with."""
    found = {"torch": "", "triton": ""}
    for name in found:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name).partition("+")[0]
    return found


def _show_only(device: str | None) -> None:
    """Have CUDA see the chosen device alone: it is then the current one, in every process."""
    _, _, index = (device or "cuda").partition(":")
    if index:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[int(index)] if visible else index
