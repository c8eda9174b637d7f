"""Callbacks after a module's import, without importing it.

`torch._inductor` takes seconds to import, and most programs that import torch-diode never need it:
registration waits until torch imports it.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]


class _NotifyingLoader(Loader):
    """Loads as the module's own loader does, then notifies the watcher."""

    def __init__(self, loader: Loader, watcher: ImportWatcher) -> None:
        self._loader, self._watcher = loader, watcher

    def __getattr__(self, name: str) -> Any:
        """Any other attribute of the module's own loader, such as `get_source`."""
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # inspect, linecache and pickle read these: restore the module's own first.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._watcher.notify(module)


class ImportWatcher(MetaPathFinder):
    """A finder that finds nothing itself; in `sys.meta_path` only while callbacks wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callback]] = {}
        self._searching = threading.local()

    def when_imported(self, name: str, callback: Callback) -> None:
        """Call back with the module: now if it is imported already, else after its import."""
        module = sys.modules.get(name)
        if module is not None:
            callback(module)
            return
        self._waiting.setdefault(name, []).append(callback)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def cancel(self, callback: Callback) -> None:
        """Drop a callback that is still waiting."""
        for callbacks in self._waiting.values():
            if callback in callbacks:
                callbacks.remove(callback)
        self._waiting = {name: waiting for name, waiting in self._waiting.items() if waiting}
        self._leave_if_done()

    def notify(self, module: ModuleType) -> None:
        """Run the callbacks that wait for this module."""
        callbacks = self._waiting.pop(module.__name__, [])
        self._leave_if_done()
        for callback in callbacks:
            callback(module)

    def _leave_if_done(self) -> None:
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The other finders' spec for a module waited for, with its loader wrapped."""
        if fullname not in self._waiting or getattr(self._searching, "name", "") == fullname:
            return None
        self._searching.name = fullname
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.name = ""
        if spec is not None and spec.loader is not None:
            spec.loader = _NotifyingLoader(spec.loader, self)
        return spec


import_watcher = ImportWatcher()
