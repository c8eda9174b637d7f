"""An integration that observes compiles without taking decisions."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from torch_diode.integration.base import ChoicesIntegration

if TYPE_CHECKING:
    from torch_diode.integration.installation import Registration


class Observer(ChoicesIntegration):
    """Overrides nothing. Its fingerprint is unique: a graph from torch's cache is not lowered, and
    there would be nothing to observe."""

    name = "observer"
    hooks: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self._fingerprint = f"observed {uuid.uuid4().hex}"

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """Unique per observer."""
        return self._fingerprint

    def mixin(self, handler: Any) -> type | None:
        """None: every handler is left unchanged."""
        return None

    @contextlib.contextmanager
    def installed(self, owner: Registration) -> Iterator[None]:
        """Installed inside the `with`, beside torch-diode's own integrations if those are on."""
        with owner.lock:
            self.install(owner)
        try:
            yield
        finally:
            with owner.lock:
                self.uninstall(owner)
