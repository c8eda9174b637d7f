"""Tuning: trace what a program compiles, time all candidates of it here, keep that and use it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_diode.collection.cluster.node import compiling_processes
from torch_diode.collection.devices import CPU, Devices, by_threads, find_devices
from torch_diode.collection.store.output import check_writable
from torch_diode.files.tables import write_table
from torch_diode.integration import registration
from torch_diode.integration.tuned_tables import TunedFolder, tuned_folder
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.tuning.gains import Gain, gains_of, portable_table, total_us
from torch_diode.tuning.measuring import Measuring
from torch_diode.tuning.plan import Plan, Task, make_plan
from torch_diode.tuning.traced_program import Traced, read_traced, trace_call, trace_program
from torch_diode.types.errors import EmptySelectionError, FileFaultError, InvalidValueError
from torch_diode.types.hardware import Hardware

Program = str | os.PathLike[str] | Callable[[], Any]
_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class TuneOptions:
    """Options of a tuning, whatever the program; checked on construction."""

    minutes: float | None = None
    """Time to measure; what is not measured then is measured by the next run."""
    timeout: float | None = None
    """Seconds after which the program is stopped; what it compiled until then is tuned."""
    quick: bool = False
    """On a CPU only what needs no compiling, on a GPU only Inductor's default list; and less
    exactly."""
    dry_run: bool = False
    """Measure nothing; say what would be measured, and how long it would take."""
    output: Path | None = None
    """A table of this program's problems to write, to be used elsewhere."""
    overwrite: bool = False
    """Replace an output that exists."""
    model: bool = False
    """Also train a model for this machine, which decides on the problems of other programs."""
    device: str | None = None
    """`cpu`, `cuda` or `cuda:1`: tune what runs there; by default all devices of the program."""
    ray: str | None = None
    """Address of a Ray cluster: its machines of the same hardware and torch measure, in place of
    this one."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("minutes", "timeout"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e6:
                raise InvalidValueError(f"--{name}: got {value!r}; expected a number above 0")
        if self.output is not None:
            if self.output.suffix != ".json":
                raise FileFaultError(
                    f"{self.output}: got the ending {self.output.suffix!r}; expected .json"
                )
            check_writable(self.output, self.overwrite)


@dataclass(frozen=True, eq=False)
class TuneResult:
    """The outcome of a tuning."""

    gains: tuple[Gain, ...]
    """The program's problems that are measured, now or before: what saves most first."""
    measured: int
    """Problems timed now."""
    reused: int
    """Problems that were measured before."""
    waiting: tuple[Task, ...]
    """Problems that are not measured: all that are to be, in a dry run."""
    seconds: float
    """Estimated time to measure those."""
    folders: tuple[TunedFolder, ...]
    left_out: Counter[str]
    """Reasons for which problems were not timed, and how many."""
    notes: tuple[str, ...] = ()

    @property
    def own_us(self) -> float:
        """Time of the program's matmuls, each once per occurrence, with torch's own kernels."""
        return total_us(self.gains)[0]

    @property
    def chosen_us(self) -> float:
        """The same with the kernels chosen now."""
        return total_us(self.gains)[1]


def tune(
    program: Program | None = None,
    arguments: Sequence[str] = (),
    *,
    shapeset: str | os.PathLike[str] | None = None,
    options: TuneOptions | None = None,
    progress: ProgressCallback = log_progress,
    **more: Any,
) -> TuneResult:
    """Measure what a program needs on this machine, and use it from then on.

    The program runs once, as `python program arguments` would (for a module, `program` is "-m"), or
    a function is called; or the problems are those of a shape set. `more` are the fields of
    `TuneOptions`, such as `minutes=5`. All timings are kept: another run measures only what is new.
    """
    options = options or TuneOptions(**more)
    if (program is None) == (shapeset is None):
        raise InvalidValueError("tune: expected a program, or --shapeset, and not both")
    _check_home()
    if shapeset is not None:
        traced, left_out = read_traced(Path(shapeset), options.device), Counter[str]()
    elif callable(program):
        traced, left_out = trace_call(program)
    else:
        assert program is not None
        traced, left_out = trace_program(Path(program), arguments, options.timeout)
    tuning = _Tuning(options, progress, left_out, whole=shapeset is not None)
    return tuning.run(traced)


def _check_home() -> None:
    """Refuse a data directory that cannot be written, before the program runs."""
    from torch_diode.files.user_data import HOME_VARIABLE, user_data

    check_writable(user_data() / "tuned" / "any", overwrite=True, option=HOME_VARIABLE)


@dataclass
class _Tuning:
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
