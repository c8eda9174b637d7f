"""The installed integrations and what they are installed in: one `Registration` per process.

Light to import: torch is looked for, not imported.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Iterable, Iterator

from torch_diode import _distribution
from torch_diode.integration.answers import AnswersIntegration, AttentionIntegration
from torch_diode.integration.base import FAILED, OFF, ON, BaseIntegration
from torch_diode.integration.cpu_attention import CpuAttentionIntegration
from torch_diode.integration.discovery import Offers
from torch_diode.integration.hooks.cache_key import CacheKeys
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.handler import HandlerSlot
from torch_diode.integration.matmul import MatmulIntegration
from torch_diode.integration.settings import Settings
from torch_diode.integration.status import Status, Step
from torch_diode.types.errors import DiodeError, InvalidValueError, MissingPartError

_OUTCOMES = {ON: "ok", OFF: "off", FAILED: "failed"}


class Registration:
    """The installed integrations, and the places of torch they are installed in.

    There is one per process, since torch compiles on threads of its own.
    """

    def __init__(self) -> None:
        self.fallback = Fallback()
        self.matmul = MatmulIntegration(fallback=self.fallback)
        self.answers = AnswersIntegration(self.fallback)
        self.attention = AttentionIntegration(self.fallback)
        self.cpu_attention = CpuAttentionIntegration(self.fallback)
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
            own = (self.matmul, self.attention, self.cpu_attention)
            self.attention.settings = self.cpu_attention.settings = settings
            for integration in (*own, *self.offers.usable(), *more):
                self._install(integration)
            self._change_answers(settings)

    def _change_answers(self, settings: Settings) -> None:
        """Install the integration anew, since its hooks depend on the functions there are."""
        if self.answers in self.active:
            self._uninstall(self.answers)
            self.active.remove(self.answers)
        self.answers.settings = settings
        if self.answers.functions:
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
        if faults := self.matmul.load_faults():
            return Step("heuristic", "failed", "; ".join(faults))
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
