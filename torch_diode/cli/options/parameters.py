"""From a command's parameters to the option dataclasses of the API, and completion of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

Options = TypeVar("Options")


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
