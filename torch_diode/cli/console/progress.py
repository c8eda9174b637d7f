"""How far a collection or a training is: a bar on a terminal, plain lines where there is none."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from torch_diode.cli.console.output import console, print_line
from torch_diode.types.dataset import Dataset

_SECONDS_A_LINE = 10.0
_SHOWN = ("loss", "regret@1", "regret@3", "regret@5")


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
