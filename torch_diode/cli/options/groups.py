"""Options that several commands have in common, written once as a dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command in which each parameter that is a dataclass is an option for each of its fields.

    typer reads a command's signature: it is shown one in which the fields stand for themselves.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            groups[parameter.name] = hint
            shown += _parameters(hint)
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(parameter.replace(annotation=hint, kind=kind))
    signature = inspect.Signature(shown)

    @functools.wraps(command)
    def run(**options: Any) -> None:
        bound = signature.bind(**options)
        bound.apply_defaults()
        given = dict(bound.arguments)
        for name, group in groups.items():
            fields = {field.name: given.pop(field.name) for field in dataclasses.fields(group)}
            given[name] = group(**fields)
        command(**given)

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    del run.__wrapped__
    return run


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    empty = inspect.Parameter.empty
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]
