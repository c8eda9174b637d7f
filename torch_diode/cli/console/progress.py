"""Progress of long-running commands: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
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
        self._bars = _new_bars()

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._bars.tasks:
            self._end(task)

    def __call__(self, report: Report) -> None:
        """Show one report."""
        if report.message:
            self._print(report.message)
            return
        task = self._task(report)
        printed_at = task.fields["printed_at"]
        done, total, text = report.done, report.total, _detail(report)
        self._bars.update(task.id, completed=done, total=total, detail=text, is_printed=False)
        if self._bars.console.is_terminal:
            self._bars.start()
        elif "regret@1" in report.values or time.monotonic() - printed_at >= _SECONDS_PER_LINE:
            self._print_stage(task)
        if done >= total:
            self._end(task)

    def _task(self, report: Report) -> Task:
        """The task of a stage that is running, or a new one."""
        running = (task for task in self._bars.tasks if task.description == report.stage)
        if found := next(running, None):
            return found
        first, now = report.done, time.monotonic()
        self._bars.add_task(
            report.stage, total=report.total, first=first, printed_at=now, detail=""
        )
        return self._bars.tasks[-1]

    def _end(self, task: Task) -> None:
        self._bars.remove_task(task.id)
        if not self._bars.tasks and self._bars.live.is_started:
            self._bars.stop()
            self._bars = _new_bars()  # started again, these would erase what is printed meanwhile
        if not task.fields["is_printed"] and task.completed > task.fields["first"]:
            self._print_stage(task)

    def _print_stage(self, task: Task) -> None:
        spent, done = task.elapsed or 0.0, task.completed
        left = ((task.total or done) - done) * spent / max(done - task.fields["first"], 1)
        text = f"{task.description}: {done:,} of {task.total:,} {task.fields['detail']}"
        self._print(f"{text}, {spent:,.0f} s" + (f", {left:,.0f} s to go" if left else ""))
        task.fields.update(is_printed=True, printed_at=time.monotonic())

    def _print(self, text: str) -> None:
        if self._bars.live.is_started:
            self._bars.console.print(text, markup=False, soft_wrap=True)
        else:
            print_line(text)


def _new_bars() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}, ETA"),
        TimeRemainingColumn(),
        console=console(),
        transient=True,
    )


def _detail(report: Report) -> str:
    figures = [
        f"{value:,.0f} {name}" if isinstance(value, int) else f"{name} {value:.4f}"
        for name, value in report.values.items()
    ]
    return ", ".join([report.unit, *figures])
