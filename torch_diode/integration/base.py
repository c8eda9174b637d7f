"""Base classes of integrations: each binds a decision to one interface of torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from torch_diode.integration.installation import Registration

WAITING = "waiting"
ON = "on"
OFF = "off"
FAILED = "failed"


class BaseIntegration(ABC):
    """One interface of torch: probed, installed, and uninstalled again.

    Each further decision is a subclass. Most decisions are methods of Inductor's choices handler:
    subclass `ChoicesIntegration` for those.
    """

    name: str
    """Short and readable; shown by `status`."""

    def __init__(self) -> None:
        self.state = OFF
        self.detail = ""

    @abstractmethod
    def probe(self) -> str:
        """Try the interface with a dummy: empty if it works, else what is missing.

        May import parts of torch; called after torch has imported them itself.
        """

    @abstractmethod
    def install(self, registration: Registration) -> None:
        """Connect to torch, without importing what torch has not imported yet."""

    @abstractmethod
    def uninstall(self, registration: Registration) -> None:
        """Undo `install`."""

    def fail(self, reason: str) -> None:
        """Turn it off for good, with a reason that `status` shows."""
        self.state, self.detail = FAILED, reason

    def status(self) -> tuple[str, str]:
        """The state (waiting, on, off or failed), and a sentence about it."""
        return self.state, self.detail


class ChoicesIntegration(BaseIntegration):
    """A decision that Inductor takes through a method of its choices handler."""

    hooks: tuple[str, ...]
    """The methods of `InductorChoices` that this overrides."""
    configs: ClassVar[Mapping[str, Any]] = {}
    """Options of `torch._inductor.config` that engage it, set as soon as its interface works; a
    value that the user sets comes first."""
    falls_back: ClassVar[bool] = False
    """True if its methods fall back to torch's by themselves when they fail."""

    @abstractmethod
    def mixin(self, handler: Any) -> type | None:
        """A class with those methods, to be put before the class of torch's handler.

        Its methods reach torch's own through `super()`. None leaves this handler unchanged.
        """

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """Text for torch's cache keys that changes whenever a compile for these devices may come
        out differently; empty where this integration changes nothing."""
        return ""

    def why_not_cached(self, gm: Any) -> str:
        """The reason torch's graph cache must not keep a graph; empty where it may."""
        return ""

    def probe(self) -> str:
        """Compose a dummy with a handler of torch's, and check that the dummy's methods win."""
        from torch._inductor.choices import InductorChoices

        from torch_diode.integration.hooks.handler import compose

        missing = [hook for hook in self.hooks if not hasattr(InductorChoices, hook)]
        if missing:
            return f"InductorChoices has no {', '.join(missing)}"
        expected = object()
        methods = {hook: lambda *_args, **_kwargs: expected for hook in self.hooks}
        handler = compose(InductorChoices(), [type("Dummy", (), methods)])
        ignored = [hook for hook in self.hooks if getattr(handler, hook)() is not expected]
        return f"{', '.join(ignored)} cannot be overridden by a dummy" if ignored else ""

    def install(self, registration: Registration) -> None:
        """Wait until torch uses its handler; only then can the interface be probed."""
        self.state, self.detail = WAITING, "torch has not asked its choices handler yet"
        registration.handler.add(self)
        registration.cache_keys.add(self)

    def uninstall(self, registration: Registration) -> None:
        """Remove the hooks and the fingerprint."""
        registration.handler.remove(self)
        registration.cache_keys.remove(self)
        self.state, self.detail = OFF, ""
