"""Fingerprints in torch's cache keys: a graph compiled under one heuristic is never reused under
another.

The FX graph cache and AOTAutograd's cache key a graph by the fields of an `FxGraphHashDetails`; a
field added there is in both keys, on every release and thread. (A handler in torch's config is in
the key on some releases only, and from 2.12 on only on the thread that set it.) The autotune cache
needs nothing: it holds times by each choice's own hash, which do not depend on the heuristic.

Caches that other tools keep above Inductor's hash `torch._inductor.config.save_config_portable()`:
the fingerprint is in its result too.
"""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from torch_diode.integration.base import FAILED, ChoicesIntegration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.device_hardware import GPU_KINDS
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.import_hook import import_watcher

MODULE = "torch._inductor.codecache"
CONFIG = "torch._inductor.config"
PORTABLE = "save_config_portable"
FIELD = "torch_diode"
_UNKNOWN = uuid.uuid4().hex
"""Stands in this process for heuristics that cannot be told yet."""


class CacheKeys:
    """Adds the integrations' fingerprints to torch's cache keys."""

    def __init__(self, fallback: Fallback, before_use: Callable[[], object] = bool) -> None:
        self._fallback = fallback
        self._before_use = before_use
        self._integrations: list[ChoicesIntegration] = []
        self._details: Any = None
        self._original: Any = None
        self._config: Any = None
        self._portable: Any = None
        self._making_key = threading.local()

    def add(self, integration: ChoicesIntegration) -> None:
        """Include an integration's fingerprint."""
        self._integrations.append(integration)
        if len(self._integrations) == 1 and self._details is None:
            import_watcher.when_imported(MODULE, self._on_import)
        if len(self._integrations) == 1:
            import_watcher.when_imported(CONFIG, self._on_config_import)

    def remove(self, integration: ChoicesIntegration) -> None:
        """Leave it out again; after the last one, torch's class is restored."""
        if integration in self._integrations:
            self._integrations.remove(integration)
        if self._integrations:
            return
        import_watcher.cancel(self._on_import)
        # If someone else has wrapped it since, ours stays below theirs and adds nothing.
        if self._details is not None and self._details.__init__ is self._patched:
            self._details.__init__ = self._original
            self._details = self._original = None
        import_watcher.cancel(self._on_config_import)
        if self._config is not None and vars(self._config).get(PORTABLE) is self._portable:
            del vars(self._config)[PORTABLE]
        self._config = None

    @property
    def attached(self) -> bool:
        """True once torch's class is patched."""
        return self._details is not None

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """All integrations' fingerprints for a compile; empty where the compile is plain torch's.

        Unique text where ours fails: no cache is better than a wrong entry. Another integration
        that fails is turned off.
        """
        used = list(devices)
        texts = self._ask(lambda integration: integration.fingerprint(used))
        if texts is None:
            return uuid.uuid4().hex
        return "+".join(text for text in texts if text)

    def _ask(self, question: Callable[[ChoicesIntegration], str]) -> list[str] | None:
        """The integrations' answers; None where one of ours fails."""
        self._before_use()
        answers = []
        for integration in list(self._integrations):
            if integration.state == FAILED:
                continue
            ours = integration.falls_back
            fail, name = (None, "") if ours else (integration.fail, integration.name)
            answer = self._fallback.run(functools.partial(question, integration), fail, name)
            if answer is not None:
                answers.append(answer)
            elif ours:
                return None
        return answers

    def why_not_cached(self, gm: Any) -> str:
        """An integration's reason to keep a graph out of the cache; empty where none has one."""
        reasons = self._ask(lambda integration: integration.why_not_cached(gm))
        if reasons is None:
            return "torch-diode could not tell what the graph contains"
        return next(filter(None, reasons), "")

    def _on_import(self, codecache: ModuleType) -> None:
        self._fallback.run(lambda: self._attach(codecache))

    def _attach(self, codecache: ModuleType) -> None:
        details = codecache.FxGraphHashDetails
        original = details.__init__

        @functools.wraps(original)
        def init(self: Any, gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> None:
            keys._making_key.now = True
            try:
                original(self, gm, example_inputs, *args, **kwargs)
            finally:
                keys._making_key.now = False
            if reason := keys.why_not_cached(gm):
                raise codecache.BypassFxGraphCache(f"torch-diode: {reason}")
            text = keys.fingerprint(devices_of(example_inputs))
            if text:
                setattr(self, FIELD, text)

        keys = self
        self._details, self._original, self._patched = details, original, init
        details.__init__ = init

    def _on_config_import(self, config: ModuleType) -> None:
        self._fallback.run(lambda: self._attach_config(config))

    def _attach_config(self, config: Any) -> None:
        original = config.save_config_portable

        @functools.wraps(original)
        def save_config_portable(*args: Any, **kwargs: Any) -> dict[str, Any]:
            portable: dict[str, Any] = original(*args, **kwargs)
            text = self._portable_fingerprint()
            return {**portable, FIELD: text} if text else portable

        # Not by assignment, which a module of options takes for an option.
        vars(config)[PORTABLE] = save_config_portable
        self._config, self._portable = config, save_config_portable

    def _portable_fingerprint(self) -> str:
        """The fingerprint for this machine; empty in torch's own keys, which have the one for their
        graph, and where the config is sent to a copy of torch that knows its own options only."""
        inside = getattr(self._making_key, "now", False)
        if self._config is None or inside or torch_compat.serializes_graphs():
            return ""
        devices = self._fallback.run(current_devices)
        return _UNKNOWN if devices is None else self.fingerprint(devices)


def current_devices() -> list[Any] | None:
    """The CPU and the current GPU; None where torch has not initialised the GPU yet, which a
    program that is about to fork must not."""
    import torch

    current = torch.accelerator.current_accelerator()
    if current is None or current.type not in GPU_KINDS:
        return devices_of([])
    module = getattr(torch, current.type)
    return devices_of([]) if module.is_initialized() or not module.is_available() else None


def devices_of(example_inputs: Iterable[Any]) -> list[Any]:
    """The devices a graph may use: the CPU, and the GPUs of its inputs or else the current one."""
    import torch

    found = [d for d in torch_compat.devices_in(example_inputs) if d.type in GPU_KINDS]
    if not found and torch.accelerator.is_available():
        current = torch.accelerator.current_accelerator()
        if current is not None and current.type in GPU_KINDS:
            found.append(torch.device(current.type, torch.accelerator.current_device_index()))
    return [torch.device("cpu"), *found]
