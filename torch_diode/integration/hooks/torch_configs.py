"""Options of torch that integrations need, set and restored.

Their defaults are changed rather than their values: a value belongs to one thread from torch 2.12
on, and what the user has set, in code or by the environment, must stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_diode.integration.hooks import torch_compat
from torch_diode.types.errors import InvalidValueError


class TorchConfigs:
    """The options that are set, and by which integration."""

    def __init__(self) -> None:
        self._set: dict[str, dict[str, tuple[Any, Any]]] = {}
        """By integration and option, the value and the default before it."""

    def turn_on(self, name: str, configs: Mapping[str, Any]) -> None:
        """Set the options of an integration; all of them or, after an error, none."""
        options = torch_compat.config_options()
        unknown = [option for option in configs if option not in options]
        if unknown:
            raise InvalidValueError(
                f"configs: got {', '.join(unknown)}; expected options of torch._inductor.config"
            )
        for option, value in configs.items():
            self._set.setdefault(name, {})[option] = value, options[option].default
            options[option].default = value

    def turn_off(self, name: str) -> None:
        """Restore the options of an integration, except those changed by others since."""
        for option, (value, before) in self._set.pop(name, {}).items():
            entry = torch_compat.config_options()[option]
            if entry.default is value:
                entry.default = before

    def shown(self) -> tuple[str, ...]:
        """Each option with its value and integration, as text."""
        return tuple(
            f"{option}={value!r} ({name})"
            for name, options in self._set.items()
            for option, (value, _) in options.items()
        )
