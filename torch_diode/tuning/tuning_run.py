"""One tuning of traced problems: device by device, plan, measure, and what is gained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch_diode.collection.cluster.node import compiling_processes
from torch_diode.collection.devices import CPU, Devices, by_threads, find_devices
from torch_diode.files.tables import write_table
from torch_diode.integration import registration
from torch_diode.integration.tuned_tables import TunedFolder, tuned_folder
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.tuning.gains import Gain, gains_of, portable_table
from torch_diode.tuning.measuring import Measuring
from torch_diode.tuning.plan import Plan, Task, make_plan
from torch_diode.tuning.result import TuneResult
from torch_diode.tuning.traced_program import Traced
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware

if TYPE_CHECKING:
    from torch_diode.tuning.tune import TuneOptions

_DEVICES = ("cpu", "cuda")


@dataclass
class TuningRun:
    """A tuning, and what came of it so far; `whole` times also what needs constant weights."""

    options: TuneOptions
    progress: ProgressCallback
    left_out: Counter[str]
    whole: bool
    gains: list[Gain] = field(default_factory=list)
    waiting: list[Task] = field(default_factory=list)
    folders: list[TunedFolder] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    measured: int = 0
    reused: int = 0
    seconds: float = 0.0

    def run(self, traced: Traced) -> TuneResult:
        """Measure what is not measured yet, and use it from now on."""
        parts = self._by_device(traced)
        for devices, chip, part in parts:
            self._tune(devices, chip, part)
        if not self.gains and not self.waiting and not self.measured:
            reasons = ", ".join(self.left_out) or "no matmul on such a device"
            raise EmptySelectionError(
                f"tune: got {len(traced)} problems, none of which has a choice: {reasons}"
            )
        if self.options.output is not None and self.gains:
            write_table(portable_table(self.gains, self.folders), self.options.output)
        matmul = registration._registration.matmul
        matmul.change(matmul.settings)  # loads the table at its next decision
        return TuneResult(
            tuple(self.gains),
            self.measured,
            self.reused,
            tuple(self.waiting),
            self.seconds,
            tuple(self.folders),
            self.left_out,
            tuple(self.notes),
        )

    def _by_device(self, traced: Traced) -> list[tuple[Devices, Hardware, Traced]]:
        """The problems by the hardware they were met on."""
        wanted = (self.options.device or "").partition(":")[0]
        parts: dict[tuple[str, int], Traced] = {}
        for item, count in traced.items():
            if item.device not in _DEVICES:
                self.left_out[f"on {item.device}, which cannot be timed"] += 1
            elif wanted in ("", item.device):
                parts.setdefault((item.device, item.threads), Counter())[item] = count
        found = []
        for (device, threads), part in parts.items():
            devices = find_devices(self.options.device or device)
            chips = by_threads(devices.hardware, (threads,)) if threads else (devices.hardware,)
            found.append((devices, chips[0], part))
        return found

    def _tune(self, devices: Devices, chip: Hardware, traced: Traced) -> None:
        plan = make_plan(chip, traced, quick=self.options.quick, whole=self.whole)
        self.left_out += plan.left_out
        measuring = Measuring(tuned_folder(chip), self.progress)
        if not self.options.dry_run:
            measuring.resume()
        tasks = plan.without(measuring.kept)
        self.reused += len(plan.tasks) - len(tasks)
        if tasks and not self.options.dry_run:
            self._report(plan, tasks, measuring)
            measuring.run(
                plan,
                tasks,
                devices,
                quick=self.options.quick,
                minutes=self.options.minutes,
                seed=self.options.seed,
                ray=self.options.ray,
            )
        if measuring.left_out:
            self.left_out["they end what times them"] += len(measuring.left_out)
        left = plan.without(measuring.kept)
        self.measured += len(tasks) - len(left)
        self.waiting += left
        self.seconds += _seconds(plan, left)
        self.gains += gains_of(plan, measuring.table())
        self.folders.append(measuring.folder)
        self.notes += measuring.notes
        if self.options.model and measuring.kept is not None and not self.options.dry_run:
            self.notes.append(self._train(chip, measuring.folder))

    def _train(self, chip: Hardware, folder: TunedFolder) -> str:
        from torch_diode.tuning.own_model import train_own_model

        options = self.options
        return train_own_model(
            chip,
            folder,
            quick=options.quick,
            device=options.device,
            seed=options.seed,
            progress=self.progress,
        )

    def _report(self, plan: Plan, tasks: Sequence[Task], measuring: Measuring) -> None:
        if measuring.kept is not None and len(tasks) == len(plan.tasks):
            self.notes.append(
                "none of its problems was measured before: if a program changes its shapes from "
                "run to run, tune it on those it usually has"
            )
        text = f"{len(tasks):,} of {len(plan.tasks):,} problems to measure on {plan.hardware.label}"
        self.progress(Progress(message=f"{text}, about {_seconds(plan, tasks):,.0f} s"))


def _seconds(plan: Plan, tasks: Sequence[Task]) -> float:
    return plan.seconds(tasks, compiling_processes(plan.hardware.kind == CPU))
