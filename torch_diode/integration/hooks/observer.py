"""Looking on while Inductor compiles, without a part in what it decides."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from torch_diode.integration import registration
from torch_diode.integration.base import ChoicesIntegration


class Observer(ChoicesIntegration):
    """An integration that answers nothing.

    Its fingerprint is one nobody else has: a graph served from torch's cache is not lowered, and
    there would be nothing to see.
    """

    name = "observer"
    hooks: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self._fingerprint = f"observed {uuid.uuid4().hex}"

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """In torch's cache keys while this looks on."""
        return self._fingerprint

    def mixin(self, handler: Any) -> type | None:
        """Nothing to answer."""
        return None

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Plugged in for a while, beside torch-diode's own integrations if they are on."""
        owner = registration._registration
        with owner.lock:
            self.install(owner.sockets)
        try:
            yield
        finally:
            with owner.lock:
                self.uninstall(owner.sockets)
