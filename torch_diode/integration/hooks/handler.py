"""Composition of our hooks with torch's choices handler: on every thread, and reversibly.

Torch keeps its handler in a thread-local, created on first use. Each compiling thread (autograd's
for backward graphs too) has its own, and some exist before torch-diode is enabled. So nothing is
stored there; instead the slot's reading method is overridden, to return torch's handler with our
hooks before it. Handlers that others install, before or after, are composed the same way, and
undoing it removes one attribute.

Those in the register that torch has from 2.15 on (`register_inductor_choices`) are composed, too.
We are not in it ourselves: there the first handler to override a method hides the others even where
it abstains, registering replaces the handler of the thread, and every graph's cache key changes
although torch may decide all of it.
"""

from __future__ import annotations

import copyreg
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch_diode.integration.base import FAILED, ON, ChoicesIntegration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Abstained, Fallback
from torch_diode.integration.hooks.import_hook import import_watcher
from torch_diode.integration.hooks.torch_configs import TorchConfigs
from torch_diode.types.errors import InvalidValueError

MODULE = "torch._inductor.virtualized"


class HandlerSlot:
    """Torch's slot for the choices handler, with integrations put before the handler in it."""

    def __init__(self, fallback: Fallback, before_use: Callable[[], object] = bool) -> None:
        self._fallback = fallback
        self._before_use = before_use
        self._integrations: list[ChoicesIntegration] = []
        self.configs = TorchConfigs()
        self._slot: Any = None
        self._composed: dict[int, tuple[weakref.ref[Any], Any | None]] = {}
        """By identity: handlers may be equal to one another, or have no hash."""
        self._lock = threading.RLock()

    def add(self, integration: ChoicesIntegration) -> None:
        """Use an integration's hooks, as soon as torch has imported its handler."""
        with self._lock:
            self._integrations.append(integration)
            self._composed.clear()
        if len(self._integrations) == 1:
            import_watcher.when_imported(MODULE, self._on_import)

    def remove(self, integration: ChoicesIntegration) -> None:
        """Remove an integration; after the last one, the slot is restored."""
        with self._lock:
            if integration not in self._integrations:
                return
            self._integrations.remove(integration)
            self._composed.clear()
            self.configs.turn_off(integration.name)
        if not self._integrations:
            import_watcher.cancel(self._on_import)
            if self._slot is not None:
                del self._slot._get_handler
                self._slot = None

    @property
    def attached(self) -> bool:
        """True once torch's slot is patched."""
        return self._slot is not None

    def _on_import(self, virtualized: ModuleType) -> None:
        self._fallback.run(lambda: self._attach(virtualized))

    def _attach(self, virtualized: ModuleType) -> None:
        slot = torch_compat.choices_slot(virtualized)
        original = slot._get_handler

        def get_handler(check_poisoned: bool = True) -> Any:
            handler = original(check_poisoned)
            # Torch passes False when it saves a handler to restore it later: that has to be its
            # own, or ours would outlive `disable`.
            return self._composed_with(handler) if check_poisoned else handler

        slot._get_handler = get_handler
        self._slot = slot

    def _composed_with(self, handler: Any) -> Any:
        key = id(handler)
        known = self._composed.get(key)
        if known is not None and known[0]() is handler:
            return handler if known[1] is None else known[1]
        try:
            reference = weakref.ref(handler, lambda _: self._composed.pop(key, None))
        except TypeError:  # not of torch's class, which allows weak references
            return handler
        self._before_use()
        with self._lock:
            composed = self._fallback.run(lambda: self._compose(handler))
            # None for a handler left unchanged: an entry must not keep its handler alive.
            self._composed[key] = (reference, composed)
        return handler if composed is None else composed

    def _compose(self, handler: Any) -> Any | None:
        from torch._inductor.choices import InductorChoices

        if getattr(handler, "decides_alone", False):
            return None
        if not isinstance(handler, InductorChoices):
            # Torch accepts any object with the right methods; our mixins would hide them.
            raise Abstained(f"choices handler {type(handler).__name__} is no InductorChoices")
        mixins = [part for i in list(self._integrations) for part in self._mixins(i, handler)]
        return compose(handler, mixins) if mixins else None

    def _mixins(self, integration: ChoicesIntegration, handler: Any) -> list[type]:
        """An integration's mixin if its interface works, after the class that guards it; an
        integration that fails is turned off alone."""

        def mixins() -> list[type]:
            own = integration.mixin(handler) if self._is_on(integration) else None
            if own is None:
                return []
            guards = [] if integration.falls_back else [guard(own, integration, self._fallback)]
            return [*guards, own]

        return self._fallback.run(mixins, integration.fail, integration.name) or []

    def _is_on(self, integration: ChoicesIntegration) -> bool:
        """True if its interface works. Probed at the first use of the handler: before, Inductor may
        be only partly imported."""
        if integration.state not in (ON, FAILED):
            reason = integration.probe()
            if not reason:
                self.configs.turn_on(integration.name, integration.configs)
            integration.state = FAILED if reason else ON
            integration.detail = reason or f"answers {', '.join(integration.hooks)}"
        return integration.state == ON


def guard(mixin: type, integration: ChoicesIntegration, fallback: Fallback) -> type:
    """A class to put before a mixin: where a hook of the mixin fails, the next handler's is called.

    Not a subclass of it: the mixin would then come after another's base, torch's class.
    """

    def guarded(hook: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if integration.state == ON:
                own = getattr(super(before, self), hook)
                # A tuple, since the answer itself may be None.
                answer = fallback.run(lambda: (own(*args, **kwargs),), name=integration.name)
                if answer is not None:
                    return answer[0]
            return getattr(super(mixin, self), hook)(*args, **kwargs)

        return call

    overridden = [hook for hook in integration.hooks if hasattr(mixin, hook)]
    before = type(f"Guarded{mixin.__name__}", (), {hook: guarded(hook) for hook in overridden})
    return before


def compose(handler: Any, mixins: list[type]) -> Any:
    """A handler of the given one's class with the mixins before it, sharing its state."""
    own = type(handler)
    if any(vars(part).get("__slots__") for part in own.__mro__):
        raise InvalidValueError(
            f"choices handler: got a {own.__name__} with __slots__; expected one whose state is in "
            "its __dict__, to be shared; torch's own is used there"
        )
    methods = {"__reduce_ex__": lambda self, protocol: _reduce_as(own, self, protocol)}
    if any("__getattribute__" in vars(part) for part in own.__mro__[:-1]):
        mixins = [*mixins, _dispatching(own, mixins, methods)]
    composed: Any = object.__new__(type(f"Diode{own.__name__}", (*mixins, own), methods))
    composed.__dict__ = handler.__dict__
    return composed


def _dispatching(own: type, mixins: list[type], methods: dict[str, Any]) -> type:
    """A class to put after the mixins, for a handler that finds its methods by itself, as that of
    torch 2.15 for several registered handlers does: ours come first, and then what it finds."""
    added = {part for mixin in mixins for part in mixin.__mro__} - {*own.__mro__}
    ours = {name for part in added for name in vars(part) if not name.startswith("__")}

    def getattribute(self: Any, name: str) -> Any:
        find: Any = object.__getattribute__ if name in ours else own.__getattribute__
        return find(self, name)

    def found_by_itself(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(_plain(own, self), name)(*args, **kwargs)

        return call

    methods["__getattribute__"] = getattribute
    hooks = {name: found_by_itself(name) for name in ours if callable(getattr(own, name, None))}
    return type("Dispatching", (), hooks)


def _plain(own: type, composed: Any) -> Any:
    """The handler behind a composed one."""
    plain: Any = object.__new__(own)
    plain.__dict__ = composed.__dict__
    return plain


def _reduce_as(own: type, composed: Any, protocol: Any) -> Any:
    """Pickle a composed handler as the handler behind it: torch sends it to compile workers, which
    may have no torch-diode."""
    reduced = _plain(own, composed).__reduce_ex__(protocol)
    # The default reduction insists on the class of the object being pickled.
    return (object.__new__, *reduced[1:]) if reduced[0] is copyreg.__newobj__ else reduced  # type: ignore[attr-defined]
