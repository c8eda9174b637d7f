"""Options shared by commands, and their way to the option dataclasses of the API."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

Command = TypeVar("Command", bound=Callable[..., None])
Options = TypeVar("Options")


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
