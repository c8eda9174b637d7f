"""Where integrations plug into torch."""

from __future__ import annotations

from torch_diode.integration.hooks.cache_key import CacheKeys
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.handler import HandlerSlot


class Sockets:
    """Torch's places for what integrations bring; untouched until one is added, and after the
    last is removed."""

    def __init__(self, fallback: Fallback) -> None:
        self.handler = HandlerSlot(fallback)
        self.cache_keys = CacheKeys(fallback)
