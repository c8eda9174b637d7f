"""Options shared by commands, their way to the option dataclasses of the API, and options that take
several values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from torch_diode.types.problem import DTYPES, OPS

Command = TypeVar("Command", bound=Callable[..., None])
Options = TypeVar("Options")

Overwrite = Annotated[bool, typer.Option(help="Replace what exists of the output.")]
"""The one way to have a command replace a file."""


def taking(*groups: type) -> Callable[[Command], Command]:
    """Decorator that adds the options of these classes to a command's own: each annotated attribute
    is one, and its value the default. They arrive as keyword arguments."""
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=getattr(group, name), annotation=kind
        )
        for group in groups
        for name, kind in get_type_hints(group, include_extras=True).items()
    ]

    def extend(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = signature.replace(parameters=[*own, *shared])
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return extend


def build(kind: type[Options], parameters: Mapping[str, Any], **more: Any) -> Options:
    """A dataclass of those parameters that are named like its fields."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: parameters[name] for name in names & {*parameters}}, **more)


def complete(values: Iterable[str]) -> Callable[[str], list[str]]:
    """Shell completion by these values, for `typer.Option(autocompletion=…)`; a command still
    checks the value it is given."""

    def completion(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return completion


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
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in SEVERAL else ""
            result.append(argument)
        elif option and result[-1] != option and SEVERAL[option](argument):
            result += [option, argument]
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
