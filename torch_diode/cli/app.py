"""The program `torch-diode`: global options, commands, and how faults are reported."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

from torch_diode import __version__
from torch_diode.cli.commands.collecting.collect import collect
from torch_diode.cli.commands.collecting.collect_and_train import collect_and_train
from torch_diode.cli.commands.collecting.collect_shapeset import collect_shapeset
from torch_diode.cli.commands.collecting.collector_example import collector_example
from torch_diode.cli.commands.collecting.create_validation import create_validation
from torch_diode.cli.commands.collecting.trace import trace
from torch_diode.cli.commands.data import table
from torch_diode.cli.commands.data.convert import convert
from torch_diode.cli.commands.data.convert_json_to_msgpack import convert_json_to_msgpack
from torch_diode.cli.commands.data.report import report
from torch_diode.cli.commands.data.stats import stats
from torch_diode.cli.commands.training.model_example import model_example
from torch_diode.cli.commands.training.train import train
from torch_diode.cli.commands.training.validate_max_autotune import validate_max_autotune
from torch_diode.cli.commands.training.validate_model import validate_model
from torch_diode.cli.commands.using.completion import VARIABLE, completion
from torch_diode.cli.commands.using.explain import explain
from torch_diode.cli.commands.using.models import models
from torch_diode.cli.commands.using.predict import predict
from torch_diode.cli.commands.using.rank import rank
from torch_diode.cli.commands.using.run import run
from torch_diode.cli.commands.using.status import status
from torch_diode.cli.commands.using.tune import tune
from torch_diode.cli.console.help import WIDTH, BriefCommand, GroupedCommands
from torch_diode.cli.options.parameters import RUN_A_PROGRAM, flag, option, repeat_options
from torch_diode.files.datasets import FORMS
from torch_diode.types.errors import DiodeError

app = typer.Typer(
    name="torch-diode",
    cls=GroupedCommands,
    context_settings={"max_content_width": WIDTH},
    help="Heuristics for torch.compile: collect timings, learn from them, decide with them. "
    "Start with: torch-diode tune program.py",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)

_RUNS_A_PROGRAM = {
    "allow_interspersed_args": False,
    "ignore_unknown_options": True,
    "allow_extra_args": True,
}
"""Arguments after the program's name belong to the program."""


@dataclass(frozen=True)
class GlobalOptions:
    """The global options, which commands find in `context.obj`."""

    form: str | None = None
    seed: int | None = None
    device: str | None = None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"torch-diode {__version__}")
        raise typer.Exit


@app.callback()
def settings(
    context: typer.Context,
    form: str | None = option("Data form: json, msgpack or parquet.", "--format", values=FORMS),
    seed: int | None = option("Seed of everything random.", min=0, max=2**32 - 1),
    device: str | None = option("torch device, such as cuda:1.", values=["cpu", "cuda"]),
    version: bool = flag("Show the version.", "--version", callback=_version, is_eager=True),
) -> None:
    """Global options stand before the command."""
    if form not in (None, *FORMS):
        raise typer.BadParameter(
            f"got {form!r}; expected json, msgpack or parquet", param_hint="--format"
        )
    context.obj = GlobalOptions(form, seed, device)


_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Use it": (run, explain, status, completion),
    "Tune for this machine": (tune, trace),
    "Collect timings": (
        collect,
        collect_shapeset,
        create_validation,
        collector_example,
        convert,
        convert_json_to_msgpack,
    ),
    "Train and check a model": (
        train,
        validate_model,
        validate_max_autotune,
        collect_and_train,
        model_example,
    ),
    "Look": (predict, rank, models, stats, report),
}

for _panel, _commands in _PANELS.items():
    for _function in _commands:
        _name = _function.__name__.replace("_", "-")
        app.command(
            _name,
            cls=BriefCommand,
            rich_help_panel=_panel,
            context_settings=_RUNS_A_PROGRAM if _name in RUN_A_PROGRAM else None,
        )(_function)
app.add_typer(table.app, name="table", rich_help_panel="Tune for this machine")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; a `DiodeError` is printed as one sentence, with exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file's name may hold characters that the encoding does not have.
        sys.stdout.reconfigure(errors="backslashreplace")
    if VARIABLE in os.environ:
        completion_init()
    try:
        try:
            app(args=repeat_options(given), prog_name="torch-diode")
        finally:
            sys.stdout.flush()
    except DiodeError as fault:
        _refuse(_one_line(fault))
    except KeyboardInterrupt:
        sys.stderr.write("torch-diode: interrupted\n")
        sys.exit(130)
    except (OSError, ValueError, SystemExit) as fault:
        _end_by_output(fault)


def _refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"torch-diode: {sentence}\n")
    sys.exit(2)


def _end_by_output(fault: BaseException) -> NoReturn:
    """End by an error of standard output: errors of files name the file, and are `DiodeError`."""
    if isinstance(fault, SystemExit):  # click's, for the error it has as context
        if not isinstance(fault.__context__, BrokenPipeError):
            raise fault
        fault = fault.__context__
    if isinstance(fault, ValueError) and not sys.stdout.closed:
        raise fault
    with contextlib.suppress(ValueError):  # one that is closed has nothing to flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(fault, BrokenPipeError):
        sys.exit(128 + signal.SIGPIPE)  # as others do whose reader has gone (`| head`)
    if isinstance(fault, OSError):
        _refuse(f"{fault.filename or 'standard output'}: {fault.strerror or fault}")
    _refuse(f"standard output: {fault}")


def _one_line(fault: DiodeError) -> str:
    """An error's message, with escapes for the line breaks of a name in it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(fault))
