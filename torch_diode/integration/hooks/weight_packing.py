"""The hook into freezing: each linear whose constant weight torch is about to pack is offered to a
function first.

Torch packs in a pattern of a graph pass. Its patterns are registered at the first frozen compile;
so the pass is wrapped, and their handlers are replaced while it runs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.import_hook import import_watcher

MODULE = "torch._inductor.freezing"
FREEZING = "freezing_passes"

Decide = Callable[[Any], bool]
"""Takes the node of a linear; returns True if nothing is left for torch to do with it."""


class WeightPacking:
    """Asks `decide` for every linear that freezing packs."""

    def __init__(self, fallback: Fallback, decide: Decide) -> None:
        self._fallback, self._decide = fallback, decide
        self._module: Any = None
        self._original: Any = None
        self._patched: Any = None

    def install(self) -> None:
        """Wrap torch's pass as soon as its module is imported."""
        import_watcher.when_imported(MODULE, self._on_import)

    def uninstall(self) -> None:
        """Restore it; if someone else has wrapped it since, ours stays below theirs, inactive."""
        import_watcher.cancel(self._on_import)
        if self._module is not None and getattr(self._module, FREEZING) is self._patched:
            setattr(self._module, FREEZING, self._original)
        self._module = None

    def _on_import(self, module: ModuleType) -> None:
        self._fallback.run(lambda: self._attach(module))

    def _attach(self, module: ModuleType) -> None:
        original = getattr(module, FREEZING)

        @functools.wraps(original)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with self._asking():
                return original(*args, **kwargs)

        setattr(module, FREEZING, patched)
        self._module, self._original, self._patched = module, original, patched

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        active = self._module is not None
        entries = (self._fallback.run(torch_compat.linear_patterns) or []) if active else []
        handlers = [entry.handler for entry in entries]
        for entry, own in zip(entries, handlers, strict=True):
            entry.handler = self._offered_first(own)
        try:
            yield
        finally:
            for entry, own in zip(entries, handlers, strict=True):
                entry.handler = own

    def _offered_first(self, own: Callable[..., Any]) -> Callable[..., Any]:
        def handler(match: Any, *args: Any, **kwargs: Any) -> None:
            if not self._decide(match.output_node()):
                own(match, *args, **kwargs)

        return handler
