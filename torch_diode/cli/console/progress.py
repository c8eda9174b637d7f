"""Progress of long-running commands: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from torch_diode.cli.console.output import console, print_line
from torch_diode.toolkit.progress import Progress as Report
from torch_diode.types.dataset import Dataset

_SECONDS_A_LINE = 10.0
_SECONDS_PER_LINE = 10.0
_SHOWN = ("loss", "regret@1", "regret@3", "regret@5")


class ConsoleProgress:
    """Progress callback that prints messages and shows every running stage as a bar.

    A finished stage leaves one line. Where standard output is not a terminal there are no bars; a
    stage then also prints a line for every regret it reports, and one every ten seconds.
    """

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._stages: dict[str, _Stage] = {}

    def __enter__(self) -> ConsoleProgress:
        if console().is_terminal:
            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[detail]}, ETA"),
                TimeRemainingColumn(),
                console=console(),
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._stages):
            self._end(name)
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, report: Report) -> None:
        """Show one report."""
        if report.message:
            self._print(report.message)
            return
        stage = self._stages.setdefault(report.stage, _Stage(report))
        stage.report, stage.is_printed = report, False
        if self._bars is not None:
            if stage.bar is None:
                stage.bar = self._bars.add_task(report.stage, total=report.total, detail="")
            self._bars.update(
                stage.bar, completed=report.done, total=report.total, detail=_detail(report)
            )
        elif "regret@1" in report.values or stage.seconds_since_line >= _SECONDS_PER_LINE:
            self._print_stage(stage)
        if report.done >= report.total:
            self._end(report.stage)

    def _end(self, name: str) -> None:
        stage = self._stages.pop(name)
        if self._bars is not None and stage.bar is not None:
            self._bars.remove_task(stage.bar)
        if not stage.is_printed and stage.report.done > stage.first:
            self._print_stage(stage)

    def _print_stage(self, stage: _Stage) -> None:
        self._print(str(stage))
        stage.is_printed, stage.printed_at = True, time.monotonic()

    def _print(self, text: str) -> None:
        if self._bars is None:
            print_line(text)
        else:
            self._bars.console.print(text, markup=False, soft_wrap=True)


class _Stage:
    """A stage that is running: its latest report, and when it began and last printed a line."""

    def __init__(self, report: Report) -> None:
        self.report, self.first = report, report.done
        self.started_at = self.printed_at = time.monotonic()
        self.is_printed = False
        self.bar: TaskID | None = None

    @property
    def seconds_since_line(self) -> float:
        return time.monotonic() - self.printed_at

    def __str__(self) -> str:
        report, spent = self.report, time.monotonic() - self.started_at
        line = f"{report.stage}: {report.done:,} of {report.total:,} {_detail(report)}"
        left = (report.total - report.done) * spent / max(report.done - self.first, 1)
        return f"{line}, {spent:,.0f} s" + (f", {left:,.0f} s to go" if left else "")


def _detail(report: Report) -> str:
    return ", ".join([report.unit, *(f"{n} {_number(v)}" for n, v in report.values.items())])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.4f}"


class CollectionProgress:
    """Problems done of all, timings a second, and when it will be over."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done = total, done
        self.timings = 0
        self._before = done
        self._start = self._said = time.monotonic()
        self._bar: Progress | None = None
        if console().is_terminal:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("Timing"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("problems, {task.fields[rate]:,.0f} timings/s, ETA"),
                TimeRemainingColumn(),
                console=console(),
                transient=True,
            )
            self._task = self._bar.add_task("", total=total, completed=done, rate=0.0)

    def __enter__(self) -> CollectionProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self.done > self._before:
            self._say()

    def tell(self, finished: Dataset) -> None:
        """One more problem is done."""
        self.done += 1
        self.timings += len(finished)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, rate=self.rate)
        elif time.monotonic() - self._said >= _SECONDS_A_LINE:
            self._say()

    @property
    def rate(self) -> float:
        """Timings a second since the start, compiling included."""
        return self.timings / max(time.monotonic() - self._start, 1e-9)

    def _say(self) -> None:
        self._said = time.monotonic()
        spent = self._said - self._start
        left = (self.total - self.done) * spent / max(self.done - self._before, 1)
        print_line(
            f"{self.done:,} of {self.total:,} problems, {self.timings:,} timings in "
            f"{spent:,.0f} s, {self.rate:,.0f}/s, {left:,.0f} s to go"
        )


class TrainingProgress:
    """Epochs done, and the regret they reached; a `name` says of what. With `several` networks at a
    time, the epochs of all together."""

    def __init__(self, epochs: int, name: str = "Training", *, several: bool = False) -> None:
        self.epochs, self.name, self.several = epochs, name, several
        self._done: dict[str, int] = {}
        self._start = self._said = time.monotonic()
        self._note = ""
        self._bar: Progress | None = None
        if console().is_terminal:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn(name),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("epochs{task.fields[note]}, ETA"),
                TimeRemainingColumn(),
                console=console(),
                transient=True,
            )
            self._task = self._bar.add_task("", total=epochs, note="")

    def __enter__(self) -> TrainingProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, row: Mapping[str, float], of: str = "") -> None:
        """One more epoch is done, or one more time through the calls of ATen, before the first; by
        the network that is called so, where there are several."""
        if "epoch" in row:
            self._done[of] = int(row["epoch"])
        if "head" in row:
            self._note = f", ATen {row['head']:.0f} of {row['heads']:.0f}"
        elif "regret@1" in row:
            self._note = f", regret@1 {row['regret@1']:.4f}"
        done = sum(self._done.values())
        if self._bar is not None:
            self._bar.update(self._task, completed=done, note=self._note)
        elif "regret@1" in row and not self.several:
            numbers = "  ".join(f"{n} {v:.4f}" for n, v in row.items() if n in _SHOWN)
            self._say(f"epoch {done} of {self.epochs}: {numbers}")
        elif time.monotonic() - self._said >= _SECONDS_A_LINE:
            self._say(f"{self.name}: {done} of {self.epochs} epochs{self._note}")

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        print_line(f"{text}  {self._said - self._start:,.0f} s")
