"""Progress of long-running commands: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

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

_SECONDS_PER_LINE = 10.0


class ConsoleProgress:
    """Progress callback that prints messages and shows every running stage as a bar.

    A finished stage leaves one line. Where standard output is not a terminal there are no bars; a
    stage then also prints a line for every regret it reports, and one every ten seconds.
    """

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._stages: dict[str, _Stage] = {}

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._stages):
            self._end(name)

    def __call__(self, report: Report) -> None:
        """Show one report."""
        if report.message:
            self._print(report.message)
            return
        stage = self._stages.setdefault(report.stage, _Stage(report))
        stage.report, stage.is_printed = report, False
        if console().is_terminal:
            self._update_bar(stage)
        elif "regret@1" in report.values or stage.seconds_since_line >= _SECONDS_PER_LINE:
            self._print_stage(stage)
        if report.done >= report.total:
            self._end(report.stage)

    def _update_bar(self, stage: _Stage) -> None:
        report = stage.report
        if self._bars is None:
            self._bars = _start_bars()
        if stage.bar is None:
            stage.bar = self._bars.add_task(report.stage, detail="")
        self._bars.update(
            stage.bar, completed=report.done, total=report.total, detail=_detail(report)
        )

    def _end(self, name: str) -> None:
        stage = self._stages.pop(name)
        if self._bars is not None and stage.bar is not None:
            self._bars.remove_task(stage.bar)
        if self._bars is not None and not self._stages:
            self._bars.stop()
            self._bars = None
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


def _start_bars() -> Progress:
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}, ETA"),
        TimeRemainingColumn(),
        console=console(),
        transient=True,
    )
    bars.start()
    return bars


def _detail(report: Report) -> str:
    figures = [
        f"{value:,.0f} {name}" if isinstance(value, int) else f"{name} {value:.4f}"
        for name, value in report.values.items()
    ]
    return ", ".join([report.unit, *figures])
