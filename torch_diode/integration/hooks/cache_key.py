"""Keeping torch's caches apart: what is compiled under one heuristic is never served to another.

The FX graph cache and AOTAutograd's key a graph by the fields of an `FxGraphHashDetails`; one more
field there is in both keys, on every release and every thread. (A handler in torch's config is in
the key on some releases only, and from 2.12 on only on the thread that set it.) The autotune cache
needs nothing: it holds a time for each choice under that choice's own hash, which is a measurement
and no decision, and true whoever asked for it.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from torch_diode.integration.base import ChoicesIntegration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.device_hardware import GPU_KINDS
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.import_hook import import_watcher

MODULE = "torch._inductor.codecache"
FIELD = "torch_diode"


class CacheKeys:
    """Puts the integrations' fingerprints into torch's cache keys."""

    def __init__(self, fallback: Fallback) -> None:
        self._fallback = fallback
        self._integrations: list[ChoicesIntegration] = []
        self._details: Any = None
        self._original: Any = None

    def add(self, integration: ChoicesIntegration) -> None:
        """Have an integration's fingerprint in the keys from now on."""
        self._integrations.append(integration)
        if len(self._integrations) == 1 and self._details is None:
            import_watcher.when_imported(MODULE, self._arrived)

    def remove(self, integration: ChoicesIntegration) -> None:
        """Leave it out again; with the last, torch's class is as torch made it."""
        self._integrations.remove(integration)
        if self._integrations:
            return
        import_watcher.forget(self._arrived)
        # Where somebody has wrapped it since, ours stays below, and adds nothing.
        if self._details is not None and self._details.__init__ is self._ours:
            self._details.__init__ = self._original
            self._details = self._original = None

    @property
    def attached(self) -> bool:
        """Whether torch's keys have been reached yet."""
        return self._details is not None

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """All integrations' fingerprints for a compile; empty where all are plain torch's.

        Where one cannot be told, a text nobody else has: better no cache than the wrong entry.
        """
        used = list(devices)
        texts = self._fallback.run(lambda: [i.fingerprint(used) for i in self._integrations])
        if texts is None:
            return uuid.uuid4().hex
        return "+".join(text for text in texts if text)

    def _arrived(self, codecache: ModuleType) -> None:
        self._fallback.run(lambda: self._attach(codecache))

    def _attach(self, codecache: ModuleType) -> None:
        details = codecache.FxGraphHashDetails
        original = details.__init__

        @functools.wraps(original)
        def init(self: Any, gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> None:
            original(self, gm, example_inputs, *args, **kwargs)
            text = keys.fingerprint(devices_of(example_inputs))
            if text:
                setattr(self, FIELD, text)

        keys = self
        self._details, self._original, self._ours = details, original, init
        details.__init__ = init


def devices_of(example_inputs: Iterable[Any]) -> list[Any]:
    """The GPUs a graph may run on: those of its inputs, and the current one, where it may put
    tensors of its own."""
    import torch

    found = [d for d in torch_compat.devices_in(example_inputs) if d.type in GPU_KINDS]
    if not found and torch.accelerator.is_available():
        current = torch.accelerator.current_accelerator()
        if current is not None and current.type in GPU_KINDS:
            found.append(torch.device(current.type, torch.accelerator.current_device_index()))
    return found
