"""Where integrations plug into torch."""

from __future__ import annotations

from torch_diode.integration.caches import CacheKeys
from torch_diode.integration.guard import Guard
from torch_diode.integration.handler import HandlerSlot


class Sockets:
    """Torch's places for what integrations bring; untouched until one is added, and after the
    last is removed."""

    def __init__(self, guard: Guard) -> None:
        self.handler = HandlerSlot(guard)
        self.cache_keys = CacheKeys(guard)
