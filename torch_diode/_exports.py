"""Names that a package offers and imports on first use, so that importing it is light."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from torch_diode import _earlier_release


def on_first_use(
    package: str, exports: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """A package's `__getattr__`, `__dir__` and `__all__`.

    `exports` has the names of each module, `name=attribute` where the module calls it otherwise.
    """
    homes = {
        name: (f"{package}.{module}", attribute or name)
        for module, names in exports.items()
        for name, _, attribute in (export.partition("=") for export in names.split())
    }
    own = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in homes:
            _earlier_release.refuse(package, name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes[name]
        own[name] = getattr(importlib.import_module(module), attribute)
        return own[name]

    return get, lambda: sorted({*own, *homes}), sorted(homes)
