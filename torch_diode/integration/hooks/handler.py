"""Putting our hooks before torch's choices handler: on every thread, and reversibly.

Torch keeps its handler in a thread-local, made on first use. Each thread that compiles (autograd's
for backward graphs too) has its own, and some exist before torch-diode is enabled. So nothing is
stored there: what is changed is the slot's one reading method, which from then on answers with
torch's handler and our hooks before it. Handlers others install, before or after, are composed
with the same way, and undoing it is removing one attribute.
"""

from __future__ import annotations

import copyreg
import threading
import weakref
from types import ModuleType
from typing import Any

from torch_diode.integration.base import FAILED, ON, ChoicesIntegration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Abstained, Fallback
from torch_diode.integration.hooks.import_hook import import_watcher
from torch_diode.types.errors import InvalidValueError

MODULE = "torch._inductor.virtualized"


class HandlerSlot:
    """Torch's slot for the choices handler, with hooks put before what is in it."""

    def __init__(self, fallback: Fallback) -> None:
        self._fallback = fallback
        self._integrations: list[ChoicesIntegration] = []
        self._slot: Any = None
        self._composed: dict[int, tuple[weakref.ref[Any], Any | None]] = {}
        """By identity: handlers may be equal to one another, or have no hash."""
        self._lock = threading.RLock()

    def add(self, integration: ChoicesIntegration) -> None:
        """Have an integration answer its hooks from now on, or as soon as torch has them."""
        with self._lock:
            self._integrations.append(integration)
            self._composed.clear()
        if len(self._integrations) == 1:
            import_watcher.when_imported(MODULE, self._arrived)

    def remove(self, integration: ChoicesIntegration) -> None:
        """Take an integration out; with the last, the slot is as torch made it."""
        with self._lock:
            self._integrations.remove(integration)
            self._composed.clear()
        if not self._integrations:
            import_watcher.forget(self._arrived)
            if self._slot is not None:
                del self._slot._get_handler
                self._slot = None

    @property
    def attached(self) -> bool:
        """Whether torch's slot has been reached yet."""
        return self._slot is not None

    def _arrived(self, virtualized: ModuleType) -> None:
        self._fallback.run(lambda: self._attach(virtualized))

    def _attach(self, virtualized: ModuleType) -> None:
        slot = torch_compat.choices_slot(virtualized)
        original = slot._get_handler

        def get_handler(check_poisoned: bool = True) -> Any:
            found = original(check_poisoned)
            # Torch passes False when it saves a handler to put it back later: that has to be
            # its own, or ours would outlive `disable`.
            return self._before(found) if check_poisoned else found

        slot._get_handler = get_handler
        self._slot = slot

    def _before(self, found: Any) -> Any:
        key = id(found)
        known = self._composed.get(key)
        if known is not None and known[0]() is found:
            return found if known[1] is None else known[1]
        try:
            gone = weakref.ref(found, lambda _: self._composed.pop(key, None))
        except TypeError:  # none of torch's class, which allows it
            return found
        with self._lock:
            handler = self._fallback.run(lambda: self._compose(found))
            # Nothing but None for a handler left as it is: what is kept must not keep it alive.
            self._composed[key] = (gone, handler)
        return found if handler is None else handler

    def _compose(self, found: Any) -> Any | None:
        from torch._inductor.choices import InductorChoices

        if not isinstance(found, InductorChoices):
            # Torch takes anything with the right methods; of another class, ours would hide them.
            raise Abstained(f"choices handler {type(found).__name__} is no InductorChoices")
        mixins = []
        for integration in self._integrations:
            if self._answers(integration):
                mixin = integration.mixin(found)
                mixins += [] if mixin is None else [mixin]
        return compose(found, mixins) if mixins else None

    def _answers(self, integration: ChoicesIntegration) -> bool:
        """Whether its interface does; tried once, at the first use of the handler, since before
        that Inductor may be half imported."""
        if integration.state not in (ON, FAILED):
            reason = integration.probe()
            integration.state = FAILED if reason else ON
            integration.detail = reason or f"answers {', '.join(integration.hooks)}"
        return integration.state == ON


def compose(handler: Any, mixins: list[type]) -> Any:
    """A handler of the given one's own class with the mixins before it, sharing its state."""
    own = type(handler)
    if any(vars(part).get("__slots__") for part in own.__mro__):
        raise InvalidValueError(
            f"choices handler: got a {own.__name__} with __slots__; expected one whose state is in "
            "its __dict__, to be shared; torch's own is used there"
        )
    methods = {"__reduce_ex__": lambda self, protocol: _reduced(self, own, protocol)}
    composed: Any = object.__new__(type(f"Diode{own.__name__}", (*mixins, own), methods))
    composed.__dict__ = handler.__dict__
    return composed


def _reduced(composed: Any, own: type, protocol: Any) -> Any:
    """What pickling takes the handler for, which is the one behind: torch hands it to processes
    that compile for this one, and those know nothing of what is put before it here."""
    plain: Any = object.__new__(own)
    plain.__dict__ = composed.__dict__
    made = plain.__reduce_ex__(protocol)
    # The usual way insists on the class of what it is asked to pickle.
    return (object.__new__, *made[1:]) if made[0] is copyreg.__newobj__ else made  # type: ignore[attr-defined]
