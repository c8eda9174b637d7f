"""Turning torch-diode on and off: at import, or by a call.

Light to import: torch is looked for, not imported, and anything that needs `torch._inductor` waits
until torch imports it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from torch_diode import _distribution
from torch_diode.integration import settings as switches
from torch_diode.integration.answers import AnswersIntegration
from torch_diode.integration.base import FAILED, OFF, ON, BaseIntegration
from torch_diode.integration.discovery import Offers, create
from torch_diode.integration.hooks.cache_key import CacheKeys
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.handler import HandlerSlot
from torch_diode.integration.matmul import MatmulIntegration
from torch_diode.integration.settings import Settings
from torch_diode.integration.status import Status, Step
from torch_diode.types.errors import DiodeError, InvalidValueError, MissingPartError

if TYPE_CHECKING:
    from torch_diode.integration.deciding.record import Decisions
    from torch_diode.integration.settings import Heuristics
    from torch_diode.types.hardware import Hardware

Added = TypeVar("Added", bound=BaseIntegration)
_OUTCOMES = {ON: "ok", OFF: "off", FAILED: "failed"}


class Registration:
    """The installed integrations, and the places of torch they are installed in.

    There is one per process, since torch compiles on threads of its own.
    """

    def __init__(self) -> None:
        self.fallback = Fallback()
        self.matmul = MatmulIntegration(fallback=self.fallback)
        self.answers = AnswersIntegration(self.fallback)
        self.offers = Offers(self.fallback)
        self.handler = HandlerSlot(self.fallback, self.discover)
        self.cache_keys = CacheKeys(self.fallback, self.discover)
        self.active: list[BaseIntegration] = []
        self.refused: Step | None = None
        """Why nothing is on, where that was decided before any integration was tried."""
        self.lock = threading.RLock()
        self._scopes: list[Settings] = []
        self._before: tuple[list[BaseIntegration], Settings] = ([], Settings())
        """The active integrations and settings when the outermost scope was entered."""

    def enter(self, settings: Settings) -> None:
        """Enable with these settings until `leave`."""
        with self.lock:
            before = (list(self.active), self.matmul.settings)
            self.enable(settings)
            if not self._scopes:
                self._before = before
            self._scopes.append(settings)

    def leave(self, settings: Settings) -> None:
        """Return to the scope entered last of those still open, in whatever order they end."""
        with self.lock:
            self._scopes = [scope for scope in self._scopes if scope is not settings]
            if self._scopes:
                self.enable(self._scopes[-1])
                return
            active, own = self._before
            if active:
                self.enable(own, active)
            else:
                self.matmul.change(own)
                self.disable()

    def enable(self, settings: Settings, others: Iterable[BaseIntegration] = ()) -> None:
        """Install the integrations that are not yet, and use these settings."""
        with self.lock:
            more = list(others)
            for integration in more:
                if not isinstance(integration, BaseIntegration):
                    raise InvalidValueError(
                        f"integrations: got {integration!r:.60}; expected a BaseIntegration"
                    )
            self.refused = None
            if not has_torch():
                raise MissingPartError("torch: not installed; install torch 2.9 or later")
            self.matmul.change(settings)
            for integration in (self.matmul, *self.offers.usable(), *more):
                self._install(integration)
            self._change_answers(settings)

    def _change_answers(self, settings: Settings) -> None:
        """Install the integration anew, since its hooks depend on the functions there are."""
        if self.answers in self.active:
            self._uninstall(self.answers)
            self.active.remove(self.answers)
        self.answers.settings = settings
        if settings.answers:
            self._install(self.answers)

    def _install(self, integration: BaseIntegration) -> None:
        if integration in self.active:
            return
        self.active.append(integration)

        def install() -> None:
            integration.install(self)

        def undo(reason: str) -> None:
            self._uninstall(integration)
            integration.fail(reason)

        if integration is self.matmul:
            install()
        else:
            self.fallback.run(install, undo, integration.name)

    def _uninstall(self, integration: BaseIntegration) -> None:
        self.fallback.run(lambda: integration.uninstall(self), integration.fail, integration.name)

    def discover(self) -> None:
        """Install the integrations that other distributions offer: once, when torch is about to
        use its choices handler or a cache key."""
        if self.active and not self.offers.discovered:
            with self.lock:
                for integration in self.offers.discover():
                    self._install(integration)

    def add(self, integration: BaseIntegration) -> None:
        """Add an integration by hand, in place of one of its name."""
        with self.lock:
            before = self.offers.add(integration)
            if before in self.active:
                self._uninstall(before)
                self.active.remove(before)
            if self.active:
                self._install(integration)

    def disable(self) -> None:
        """Uninstall everything."""
        with self.lock:
            for integration in reversed(self.active):
                self._uninstall(integration)
            self.active.clear()
            # A handler set by hand stays, but the clean benchmark it may have installed does not.
            module = sys.modules.get("torch_diode.integration.autotune.clean_benchmark")
            if module is not None:
                module.clean_benchmark.disable_for_benchmark_sets()

    def steps(self) -> Iterator[Step]:
        """The steps of registration so far, in order of dependence."""
        if self.refused is not None:
            yield self.refused
            return
        version = torch_version()
        yield Step("torch", "ok" if version else "failed", version or "not installed")
        if not self.active:
            yield Step("registration", "off", "not enabled")
            return
        imported = self.handler.attached
        waits = "torch imports it when something is compiled"
        yield Step("inductor", "ok" if imported else "waiting", "" if imported else waits)
        for integration in self.active:
            state, detail = integration.status()
            yield Step(integration.name, _OUTCOMES.get(state, state), detail)
        yield from (offer.step() for offer in self.offers.failed())
        yield self._heuristic_step()
        yield Step("cache keys", "ok" if self.cache_keys.attached else "waiting", "")

    def _heuristic_step(self) -> Step:
        loaded = self.matmul.loaded()
        if not loaded:
            from torch_diode.integration.default_heuristic import check_files

            try:
                check_files(self.matmul.settings)
            except DiodeError as fault:
                return Step("heuristic", "failed", str(fault))
            return Step("heuristic", "waiting", "loaded at the first decision")
        texts = [f"{name}: {text}" for name, text in loaded.items()]
        return Step("heuristic", "ok" if self.matmul.has_heuristic() else "none", "; ".join(texts))

    def status(self) -> Status:
        """A snapshot of steps, counters, hardware and heuristics."""
        from torch_diode.integration.hooks import device_hardware

        return Status(
            enabled=bool(self.active),
            distribution=_distribution.NAME,
            torch=torch_version() or "missing",
            mode=self.matmul.settings.mode,
            steps=tuple(self.steps()),
            hardware=tuple(hardware.name for hardware in device_hardware.detected()),
            heuristics=self.matmul.loaded() if self.active else {},
            integrations={self.matmul.name: _distribution.NAME, **self.offers.shown()}
            if self.active
            else {},
            configs=self.handler.configs.shown(),
            counters=self.fallback.counters.copy(),
            notes=self.matmul.notes(),
        )


def load_heuristic(hardware: Hardware) -> Status:
    """Load the heuristic for a hardware now, instead of at the first decision."""
    if _registration.active:
        with contextlib.suppress(DiodeError):  # kept, and part of the status
            _registration.matmul.decider.heuristic_for(hardware)
    return _registration.status()


def has_torch() -> bool:
    """True if torch can be imported; does not import it."""
    return "torch" in sys.modules or importlib.util.find_spec("torch") is not None


def torch_version() -> str:
    """The installed torch, from its metadata where it is not imported; empty if none."""
    module = sys.modules.get("torch")
    if module is not None:
        return str(getattr(module, "__version__", ""))
    # Would take half the time of importing torch_diode.
    import importlib.metadata

    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("torch")
    return ""


_registration = Registration()


def register_on_import() -> None:
    """Enable at `import torch_diode`, in the full distribution. Never raises: importing must not
    fail a program."""
    if switches.switched_off():
        _registration.refused = Step("switch", "off", "TORCH_DIODE=0")
        return

    def register() -> None:
        try:
            _registration.enable(switches.from_environment())
        except DiodeError as fault:
            _registration.refused = Step("registration", "failed", str(fault))
            raise

    _registration.fallback.run(register)


def enable(
    heuristic: Heuristics | None = None,
    mode: str | None = None,
    *,
    strict: bool | None = None,
    top: int | None = None,
    tma: bool | None = None,
    epilogues: bool | None = None,
    integrations: Iterable[BaseIntegration] = (),
) -> Status:
    """Turn torch-diode on for this process, or change its settings.

    Without a heuristic, the default one for the hardware decides. Several may be given, as a list:
    those for matmul are tried in order, and functions for other decisions take those. Settings that
    are not given come from the environment. `integrations` adds further decisions.
    """
    settings = switches.from_environment().changed(
        heuristic=heuristic, mode=mode, strict=strict, top=top, tma=tma, epilogues=epilogues
    )
    _registration.enable(settings, integrations)
    return _registration.status()


def register_integration(integration: type[Added]) -> type[Added]:
    """Add a subclass of `BaseIntegration` for this process, also as a decorator.

    It is installed with the others: now, if torch-diode is on. One of the same name is replaced.
    """
    _registration.add(create(integration))
    return integration


def disable() -> None:
    """Turn torch-diode off; torch is as it was before."""
    _registration.disable()


@contextlib.contextmanager
def using(
    heuristic: Heuristics,
    mode: str | None = None,
    *,
    strict: bool | None = None,
    top: int | None = None,
    tma: bool | None = None,
    epilogues: bool | None = None,
) -> Iterator[None]:
    """Decide with this heuristic inside the `with`, and restore the state before it afterwards.

    Applies to the whole process, since backward graphs are compiled on autograd's threads. Call the
    backward inside the scope too: afterwards it is decided without the heuristic, but torch caches
    it with its forward. `disable()` inside holds until the scope ends.
    """
    now = current_settings() or switches.from_environment()
    with scope(
        now.changed(
            heuristic=heuristic, mode=mode, strict=strict, top=top, tma=tma, epilogues=epilogues
        )
    ):
        yield


def current_settings() -> Settings | None:
    """The settings in use; None while torch-diode is off."""
    return _registration.matmul.settings if _registration.active else None


@contextlib.contextmanager
def scope(settings: Settings) -> Iterator[None]:
    """Decide under these settings inside the `with`, as `using` does."""
    _registration.enter(settings)
    try:
        yield
    finally:
        _registration.leave(settings)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Turn torch-diode off inside the `with`, for the whole process."""
    active, settings = list(_registration.active), _registration.matmul.settings
    _registration.disable()
    try:
        yield
    finally:
        if active:
            _registration.enable(settings, active)


def status() -> Status:
    """Steps of registration, counters, hardware and heuristics; prints as text."""
    _registration.discover()
    return _registration.status()


@contextlib.contextmanager
def enabled_unless_off() -> Iterator[None]:
    """Turn torch-diode on inside the `with`, unless TORCH_DIODE=0; afterwards it is as before."""
    was_off = current_settings() is None
    if was_off and not switches.switched_off():
        enable()
    try:
        yield
    finally:
        if was_off:
            disable()


def explain() -> Decisions:
    """The recorded decisions, oldest first; prints as a table."""
    decisions = _registration.matmul.record.explain(_registration.answers.record)
    decisions.notes = _registration.matmul.notes()
    if not decisions and _registration.active:
        decisions.notes += _why_no_decisions()
    return decisions


def _why_no_decisions() -> tuple[str, ...]:
    """Why torch decided everything so far, a sentence per reason."""
    abstentions = _registration.fallback.counters.abstentions
    if not abstentions:
        loaded = _registration.matmul.loaded().items()
        return (
            "no matmul was compiled in this process; graphs from torch's cache keep their kernels, "
            "and TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 compiles them anew to show why",
            *(f"{name}: {text}" for name, text in loaded),
        )
    return tuple(f"torch decided: {reason}" for reason, _ in abstentions.most_common())


def probe() -> Status:
    """Import Inductor and probe every interface now, instead of at the first compile."""
    from torch._inductor.virtualized import V

    V.choices  # noqa: B018
    return _registration.status()
