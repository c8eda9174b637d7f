"""Options shared by commands, their way from and to the option dataclasses of the API, and options
that take several values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import fields
from functools import partial
from itertools import chain
from types import GenericAlias
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from torch_diode.cli.console.help import MORE
from torch_diode.model.registry import SHIPPED
from torch_diode.types.problem import DTYPES, OPS

Command = TypeVar("Command", bound=Callable[..., None])
Options = TypeVar("Options")


def option(
    text: str,
    *names: str,
    default: Any = None,
    values: Sequence[str] = (),
    rare: bool = False,
    **more: Any,
) -> Any:
    """An option with this help text, as the default of a command's parameter.

    Shells complete its values, but a command still checks the one it is given; `--help` only names
    a rare option.
    """
    panel, completion = MORE if rare else None, complete(values) if values else None
    return typer.Option(
        default, *names, help=text, autocompletion=completion, rich_help_panel=panel, **more
    )


flag = partial(option, default=False)
required = partial(option, default=...)

PROGRAM: Any = typer.Argument(..., help="Python program to run, or -m and a module.")
SHIPPED_MODEL = option("Model file, or `shipped` for the one in the package.", default=SHIPPED)
OUTPUT = required("File to write.", "--output", "-o")
AS_JSON = flag("For programs.", "--json")
LIMIT = option("Problems to list; 0 lists all.", default=20, min=0)
OVERWRITE = flag("Replace what exists of the output.")
"""The one way to have a command replace a file."""


def options_of(kind: Any, **described: Any) -> list[inspect.Parameter]:
    """Options for fields of a dataclass, whose types and defaults they have; one that has a default
    of its own need not be a field."""
    types, defaults = get_type_hints(kind), {field.name: field.default for field in fields(kind)}
    parameters = []
    for name, info in zip(described, map(copy, described.values()), strict=True):
        annotation = types.get(name) or type(info.default)
        if info.default is None:
            info.default = defaults[name]
        if get_origin(annotation) is tuple:  # given one by one, and the default is not shown
            annotation, info.default = GenericAlias(list, get_args(annotation)[0]), None
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=annotation
            )
        )
    return parameters


def taking(*groups: Sequence[inspect.Parameter]) -> Callable[[Command], Command]:
    """Decorator that adds these options to a command's own; they arrive as keyword arguments."""

    def extend(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = signature.replace(parameters=[*own, *chain(*groups)])
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return extend


def build(kind: type[Options], parameters: Mapping[str, Any], **more: Any) -> Options:
    """A dataclass of those parameters that are named like its fields and were given."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given = {name: parameters[name] for name in names if parameters.get(name) not in (None, [])}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return kind(**{**given, **lists}, **more)


def complete(values: Iterable[str]) -> Callable[[str], list[str]]:
    """Shell completion by these values."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


SEVERAL: dict[str, Callable[[str], bool]] = {
    "--dtypes": DTYPES.__contains__,
    "--file-extensions": lambda value: value.lstrip(".").isalnum(),
    "--input-files": bool,
    "--operations": OPS.__contains__,
    "--threads": str.isdecimal,
}
"""The options, and what can be one more value: anything else is the command's own argument."""
_TAKE_A_VALUE = ("--format", "--seed", "--device")
RUN_A_PROGRAM = ("explain", "run", "trace", "tune")
"""Commands whose later arguments belong to the program they run."""


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """`--operations mm bmm` as `--operations mm --operations bmm`; but what a command hands on to a
    program stays as it is."""
    if _command(arguments) in RUN_A_PROGRAM:
        return list(arguments)
    result: list[str] = []
    repeated = ""
    for argument in arguments:
        if argument.startswith("-"):
            repeated = argument if argument in SEVERAL else ""
            result.append(argument)
        elif repeated and result[-1] != repeated and SEVERAL[repeated](argument):
            result += [repeated, argument]
        else:
            result.append(argument)
    return result


def _command(arguments: Sequence[str]) -> str:
    """The first word that is neither a global option nor its value."""
    before = ""
    for argument in arguments:
        if not argument.startswith("-") and before not in _TAKE_A_VALUE:
            return argument
        before = argument
    return ""
