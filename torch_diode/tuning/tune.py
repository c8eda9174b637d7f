"""Tuning: trace what a program compiles, time all candidates of it here, keep that and use it."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_diode.collection.store.output import check_writable
from torch_diode.toolkit.progress import ProgressCallback, log_progress
from torch_diode.tuning.result import TuneResult
from torch_diode.tuning.traced_program import read_traced, trace_call, trace_program
from torch_diode.types.errors import FileFaultError, InvalidValueError

Program = str | os.PathLike[str] | Callable[[], Any]


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
        traced, left_out = trace_program(Path(program), arguments, options.timeout, _import_run)
    from torch_diode.tuning.tuning_run import TuningRun

    return TuningRun(options, progress, left_out, whole=shapeset is not None).run(traced)


def _import_run() -> None:
    """Import what measures, and torch with it, while the program runs."""
    importlib.import_module("torch_diode.tuning.tuning_run")


def _check_home() -> None:
    """Refuse a data directory that cannot be written, before the program runs."""
    from torch_diode.files.user_data import HOME_VARIABLE, user_data

    check_writable(user_data() / "tuned" / "any", overwrite=True, option=HOME_VARIABLE)
