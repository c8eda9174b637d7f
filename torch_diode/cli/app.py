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
from typing import Annotated, NoReturn

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

from torch_diode import __version__
from torch_diode.cli.commands.collecting import (
    collect,
    collect_and_train,
    collect_shapeset,
    collector_example,
    create_validation,
    trace,
)
from torch_diode.cli.commands.data import convert, convert_json_to_msgpack, report, stats, table
from torch_diode.cli.commands.training import (
    model_example,
    train,
    validate_max_autotune,
    validate_model,
)
from torch_diode.cli.commands.using import (
    completion,
    explain,
    models,
    predict,
    rank,
    run,
    status,
    tune,
)
from torch_diode.cli.console.help import WIDTH, BriefCommand, GroupedCommands
from torch_diode.cli.options.parameters import RUN_A_PROGRAM, complete, repeat_options
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
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="Data form: json, msgpack or parquet.", autocompletion=complete(FORMS)
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of everything random.", min=0, max=2**32 - 1)
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="torch device, such as cuda:1.", autocompletion=complete(["cpu", "cuda"])
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Global options stand before the command."""
    if form not in (None, *FORMS):
        raise typer.BadParameter(
            f"got {form!r}; expected json, msgpack or parquet", param_hint="--format"
        )
    context.obj = GlobalOptions(form, seed, device)


_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Use it": {
        "run": run.run,
        "explain": explain.explain,
        "status": status.status,
        "completion": completion.completion,
    },
    "Tune for this machine": {"tune": tune.tune, "trace": trace.trace},
    "Collect timings": {
        "collect": collect.collect,
        "collect-shapeset": collect_shapeset.collect_shapeset,
        "create-validation": create_validation.create_validation,
        "collector-example": collector_example.collector_example,
        "convert": convert.convert,
        "convert-json-to-msgpack": convert_json_to_msgpack.convert_json_to_msgpack,
    },
    "Train and check a model": {
        "train": train.train,
        "validate-model": validate_model.validate_model,
        "validate-max-autotune": validate_max_autotune.validate_max_autotune,
        "collect-and-train": collect_and_train.collect_and_train,
        "model-example": model_example.model_example,
    },
    "Look": {
        "predict": predict.predict,
        "rank": rank.rank,
        "models": models.models,
        "stats": stats.stats,
        "report": report.report,
    },
}

for _panel, _commands in _PANELS.items():
    for _name, _function in _commands.items():
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
    if completion.VARIABLE in os.environ:
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
