"""Discovery of integrations that other distributions offer.

A distribution offers one by an entry point of the group `torch_diode.integrations` that names a
subclass of `BaseIntegration`. They are loaded before torch compiles the first graph or when
`status()` is called, not at import, which has to be light and may happen within torch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch_diode.integration.base import FAILED, BaseIntegration
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.status import Step
from torch_diode.types.errors import InvalidValueError

GROUP = "torch_diode.integrations"
BY_HAND = "register_integration"


@dataclass
class Offer:
    """An integration, or the reason why there is none, and the distribution it is from."""

    name: str
    source: str
    integration: BaseIntegration | None = None
    fault: str = ""

    def fail(self, reason: str) -> None:
        """Keep the reason why it could not be loaded."""
        self.fault = reason

    def step(self) -> Step:
        """The step of registration it stands for where it could not be loaded."""
        return Step(self.name, "failed", f"{self.fault} ({self.source})")


class Offers:
    """The integrations that distributions offer or that were registered by hand, by name."""

    def __init__(self, fallback: Fallback) -> None:
        self._fallback = fallback
        self.by_name: dict[str, Offer] = {}
        self.discovered = False

    def discover(self) -> list[BaseIntegration]:
        """Load what distributions offer, once; one that fails is kept with the reason."""
        if self.discovered:
            return []
        self.discovered = True
        # Would take a quarter of the time of importing torch_diode.
        from importlib.metadata import entry_points

        found = self._fallback.run(lambda: entry_points(group=GROUP)) or ()
        offers = [self._load(point) for point in found]
        return [offer.integration for offer in offers if offer.integration is not None]

    def _load(self, point: Any) -> Offer:
        dist = point.dist
        offer = Offer(point.name, f"{dist.name} {dist.version}" if dist else "no distribution")

        def load() -> None:
            integration = create(point.load())
            if integration.name in self.by_name:
                other = self.by_name[integration.name].source
                raise InvalidValueError(f"name: got {integration.name!r}, which {other} has too")
            offer.name, offer.integration = integration.name, integration

        self._fallback.run(load, offer.fail, point.name)
        self.by_name.setdefault(offer.name, offer)
        return offer

    def add(self, integration: BaseIntegration) -> BaseIntegration | None:
        """Add one by hand; returns the one of that name it replaces."""
        before = self.by_name.get(integration.name)
        self.by_name[integration.name] = Offer(integration.name, BY_HAND, integration)
        return before.integration if before is not None else None

    def usable(self) -> list[BaseIntegration]:
        """The integrations that could be loaded."""
        return [o.integration for o in self.by_name.values() if o.integration is not None]

    def failed(self) -> list[Offer]:
        """The others."""
        return [offer for offer in self.by_name.values() if offer.integration is None]

    def shown(self) -> dict[str, str]:
        """By name, the source of each, and whether it failed."""
        return {
            name: offer.source
            + (", failed" if offer.integration is None or offer.integration.state == FAILED else "")
            for name, offer in self.by_name.items()
        }


def create(integration: Any) -> BaseIntegration:
    """An instance of an integration's class; raises where it is none or has no name."""
    if not (isinstance(integration, type) and issubclass(integration, BaseIntegration)):
        raise InvalidValueError(
            f"integration: got {integration!r:.60}; expected a subclass of BaseIntegration"
        )
    created = integration()
    if not isinstance(getattr(created, "name", None), str):
        raise InvalidValueError(
            f"integration: got {integration.__name__} without a name; expected `name`, a text"
        )
    return created
