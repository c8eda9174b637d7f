"""Turning torch-diode on and off: by itself at import, or asked to.

Everything here is light: torch is looked for, not imported, and what needs `torch._inductor` waits
until torch imports it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torch_diode import _distribution
from torch_diode.integration import settings as switches
from torch_diode.integration.base import FAILED, OFF, ON, BaseIntegration
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.matmul import MatmulIntegration
from torch_diode.integration.settings import Settings
from torch_diode.integration.sockets import Sockets
from torch_diode.integration.status import Status, Step
from torch_diode.types.errors import DiodeError, InvalidValueError, MissingPartError

if TYPE_CHECKING:
    from torch_diode.heuristics.base import Heuristic
    from torch_diode.integration.deciding.record import Decisions

_OUTCOMES = {ON: "ok", OFF: "off", FAILED: "failed"}


class Registration:
    """The integrations that are plugged in, and the steps that led there.

    There is one for the process: compiles happen on threads nobody announces.
    """

    def __init__(self) -> None:
        self.fallback = Fallback()
        self.matmul = MatmulIntegration(fallback=self.fallback)
        self.sockets = Sockets(self.fallback)
        self.active: list[BaseIntegration] = []
        self.refused: Step | None = None
        """Why nothing is on, where that was decided before any integration was tried."""
        self.lock = threading.RLock()
        self._scopes: list[Settings] = []
        self._before: tuple[list[BaseIntegration], Settings] = ([], Settings())
        """What was on, and how, when the first of the scopes was entered."""

    def enter(self, settings: Settings) -> None:
        """Plug in, with these settings, until they are left."""
        with self.lock:
            before = (list(self.active), self.matmul.settings)
            self.enable(settings)
            if not self._scopes:
                self._before = before
            self._scopes.append(settings)

    def leave(self, settings: Settings) -> None:
        """As the scope around says; what was entered last holds, whoever leaves first."""
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
        """Plug in, with these settings; what is in already stays, with the new settings."""
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
            for integration in (self.matmul, *more):
                if integration not in self.active:
                    integration.install(self.sockets)
                    self.active.append(integration)

    def disable(self) -> None:
        """Unplug everything; torch is as it was."""
        with self.lock:
            for integration in reversed(self.active):
                integration.uninstall(self.sockets)
            self.active.clear()
            # A handler put in by hand is not ours to take out; what it set up beside itself is.
            times = sys.modules.get("torch_diode.integration.autotune.clean_benchmark")
            if times is not None:
                times.clean_benchmark.disable_for_benchmark_sets()

    def steps(self) -> Iterator[Step]:
        """What was tried, in the order it depends on one another, as far as it got."""
        if self.refused is not None:
            yield self.refused
            return
        version = torch_version()
        yield Step("torch", "ok" if version else "failed", version or "not installed")
        if not self.active:
            yield Step("registration", "off", "not enabled")
            return
        imported = self.sockets.handler.attached
        waits = "torch imports it when something is compiled"
        yield Step("inductor", "ok" if imported else "waiting", "" if imported else waits)
        for integration in self.active:
            state, detail = integration.status()
            yield Step(integration.name, _OUTCOMES.get(state, state), detail)
        yield self._heuristic_step()
        keyed = self.sockets.cache_keys.attached
        yield Step("cache keys", "ok" if keyed else "waiting", "")

    def _heuristic_step(self) -> Step:
        found = self.matmul.loaded()
        if not found:
            return Step("heuristic", "waiting", "loaded at the first decision")
        named = [f"{name}: {text}" for name, text in found.items()]
        return Step("heuristic", "ok" if self.matmul.has_heuristic() else "none", "; ".join(named))

    def status(self) -> Status:
        """All of it, as it stands."""
        from torch_diode.integration.hooks import device_hardware

        return Status(
            enabled=bool(self.active),
            distribution=_distribution.NAME,
            torch=torch_version() or "missing",
            mode=self.matmul.settings.mode,
            steps=tuple(self.steps()),
            hardware=tuple(hardware.name for hardware in device_hardware.detected()),
            heuristics=self.matmul.loaded() if self.active else {},
            counters=self.fallback.counters.copy(),
            notes=self.matmul.notes(),
        )


def has_torch() -> bool:
    """Whether torch can be imported, without doing so."""
    return "torch" in sys.modules or importlib.util.find_spec("torch") is not None


def torch_version() -> str:
    """The torch that is there, read off its metadata where it is not imported; empty if none."""
    module = sys.modules.get("torch")
    if module is not None:
        return str(getattr(module, "__version__", ""))
    # Half of what importing torch_diode would take, and needed here only.
    import importlib.metadata

    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("torch")
    return ""


_registration = Registration()


def register_on_import() -> None:
    """What `import torch_diode` does in the full distribution. Never raises: a program must not
    fail because of an import that was to make it faster."""
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
    heuristic: Heuristic | None = None,
    mode: str | None = None,
    *,
    strict: bool | None = None,
    top: int | None = None,
    tma: bool | None = None,
    epilogues: bool | None = None,
    integrations: Iterable[BaseIntegration] = (),
) -> Status:
    """Turn torch-diode on for this process, or change how it is on.

    Without a heuristic the default one for the hardware decides. What is not given comes from the
    environment's switches. `integrations` adds further decisions to the matmul one.
    """
    settings = switches.from_environment().changed(
        heuristic=heuristic, mode=mode, strict=strict, top=top, tma=tma, epilogues=epilogues
    )
    _registration.enable(settings, integrations)
    return _registration.status()


def disable() -> None:
    """Everything back to how torch had it."""
    _registration.disable()


@contextlib.contextmanager
def using(
    heuristic: Heuristic,
    mode: str | None = None,
    *,
    strict: bool | None = None,
    top: int | None = None,
    tma: bool | None = None,
    epilogues: bool | None = None,
) -> Iterator[None]:
    """Decide with this heuristic inside the `with`; afterwards all is as it was before.

    The scope is one of time, for the whole process: backward graphs are compiled on threads of
    autograd's own, and those are meant too. A backward that is called after the scope is decided
    without the heuristic, yet torch caches it with its forward: call it inside. `disable()` inside
    holds until the scope ends.
    """
    now = _registration.matmul.settings if _registration.active else switches.from_environment()
    settings = now.changed(
        heuristic=heuristic, mode=mode, strict=strict, top=top, tma=tma, epilogues=epilogues
    )
    _registration.enter(settings)
    try:
        yield
    finally:
        _registration.leave(settings)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Torch alone inside the `with`, for the whole process; afterwards all is as it was before."""
    active, settings = list(_registration.active), _registration.matmul.settings
    _registration.disable()
    try:
        yield
    finally:
        if active:
            _registration.enable(settings, active)


def status() -> Status:
    """What registration did, step by step; counters; hardware; heuristic. Prints as text."""
    return _registration.status()


def explain() -> Decisions:
    """The decisions made so far, oldest first; prints as a table."""
    return _registration.matmul.record.explain()


def probe() -> Status:
    """Import Inductor and try every interface now, instead of at the first compile."""
    from torch._inductor.virtualized import V

    V.choices  # noqa: B018
    return _registration.status()
