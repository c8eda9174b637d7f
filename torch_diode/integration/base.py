"""What every integration is: the binding of a heuristic to one interface of torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_diode.integration.sockets import Sockets

WAITING = "waiting"
ON = "on"
OFF = "off"
FAILED = "failed"


class BaseIntegration(ABC):
    """One interface of torch: tried with a dummy, then plugged in, and unplugged again.

    Another decision is one more subclass. Most are decisions of Inductor's choices handler:
    subclass `ChoicesIntegration` for those.
    """

    name: str
    """Short and readable: `status` shows it."""

    def __init__(self) -> None:
        self.state = OFF
        self.detail = ""

    @abstractmethod
    def probe(self) -> str:
        """Try the interface with a dummy: empty if it answers, else what is missing.

        May import what it needs of torch; it is asked when torch has imported it.
        """

    @abstractmethod
    def install(self, sockets: Sockets) -> None:
        """Plug in. What torch has not imported yet is waited for, not imported."""

    @abstractmethod
    def uninstall(self, sockets: Sockets) -> None:
        """Unplug: torch is as it was before `install`."""

    def status(self) -> tuple[str, str]:
        """The state, one of waiting, on, off and failed, and a sentence about it."""
        return self.state, self.detail


class ChoicesIntegration(BaseIntegration):
    """A decision that Inductor takes through a method of its choices handler."""

    hooks: tuple[str, ...]
    """The methods of `InductorChoices` that this answers."""

    @abstractmethod
    def mixin(self, handler: Any) -> type | None:
        """A class with those methods, to be put before the class of torch's handler.

        Its methods reach torch's own answer through `super()`. None leaves this handler alone.
        """

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """What of this integration a compile for these devices depends on, for torch's cache
        keys; empty where it changes nothing."""
        return ""

    def probe(self) -> str:
        """Put a dummy before a handler of torch's, and see whether it is the one that answers."""
        from torch._inductor.choices import InductorChoices

        from torch_diode.integration.hooks.handler import compose

        missing = [hook for hook in self.hooks if not hasattr(InductorChoices, hook)]
        if missing:
            return f"InductorChoices has no {', '.join(missing)}"
        answer = object()
        methods = {hook: lambda *_args, **_kwargs: answer for hook in self.hooks}
        handler = compose(InductorChoices(), [type("Dummy", (), methods)])
        silent = [hook for hook in self.hooks if getattr(handler, hook)() is not answer]
        return f"{', '.join(silent)} did not answer through a dummy" if silent else ""

    def install(self, sockets: Sockets) -> None:
        """Wait for torch to ask for its handler; only then can the interface be tried."""
        self.state, self.detail = WAITING, "torch has not asked its choices handler yet"
        sockets.handler.add(self)
        sockets.cache_keys.add(self)

    def uninstall(self, sockets: Sockets) -> None:
        """Take the hooks and the part of the cache key away."""
        sockets.handler.remove(self)
        sockets.cache_keys.remove(self)
        self.state, self.detail = OFF, ""
