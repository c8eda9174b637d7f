"""The hook into one of Inductor's lowerings: another function is asked before it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.import_hook import import_watcher

MODULE = "torch._inductor.lowering"

Lower = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Takes torch's own lowering of an operator and its arguments, and returns the lowered node."""


class LoweringHook:
    """Puts a function in the place of the lowering of `aten.<name>`, reversibly."""

    def __init__(self, fallback: Fallback, name: str, lower: Lower) -> None:
        self.name = name
        self._fallback, self._lower = fallback, lower
        self._lowerings: Any = None
        self._operator: Any = None
        self._own: Any = None
        self._patched: Any = None

    def install(self, installed: Callable[[str], object]) -> None:
        """Replace the lowering as soon as its module is imported, and say so: with the reason where
        this release of torch has none, or else an empty text."""

        def on_import(module: ModuleType) -> None:
            self._fallback.run(lambda: installed(self._attach(module)))

        self._on_import = on_import
        import_watcher.when_imported(MODULE, on_import)

    def uninstall(self) -> None:
        """Restore it; if someone else has replaced it since, theirs stays."""
        import_watcher.cancel(self._on_import)
        if self._lowerings is not None and self._lowerings.get(self._operator) is self._patched:
            self._lowerings[self._operator] = self._own
        self._lowerings = None

    def _attach(self, module: Any) -> str:
        import torch

        packet = getattr(torch.ops.aten, self.name, None)
        operator = getattr(packet, "default", None)
        own = module.lowerings.get(operator)
        if own is None:
            return f"Inductor has no lowering of {self.name}"

        def patched(*args: Any, **kwargs: Any) -> Any:
            return self._lower(own, args, kwargs)

        self._lowerings, self._operator = module.lowerings, operator
        self._own, self._patched = own, patched
        module.lowerings[operator] = patched
        return ""
