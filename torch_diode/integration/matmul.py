"""The first integration: which kernel runs a matrix multiplication."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from torch_diode.integration.base import ChoicesIntegration
from torch_diode.integration.deciding.record import Record
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.settings import Settings
from torch_diode.integration.sockets import Sockets

if TYPE_CHECKING:
    from torch_diode.integration.deciding.decider import Decider


class MatmulIntegration(ChoicesIntegration):
    """mm, addmm, bmm and baddbmm, by the heuristic the settings name or the default one.

    The decider, and numpy with it, comes with the first question: registering is light.
    """

    name = "matmul"

    def __init__(
        self,
        settings: Settings | None = None,
        fallback: Fallback | None = None,
        record: Record | None = None,
    ) -> None:
        super().__init__()
        self.fallback = fallback if fallback is not None else Fallback()
        self.record = record if record is not None else Record()
        self._settings = settings if settings is not None else Settings()
        self._decider: Decider | None = None
        self._lock = threading.Lock()
        self._undo_preprocessing: Callable[[], None] | None = None

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """This release's one method for matmul choices."""
        return (torch_compat.matmul_hook(),)

    @property
    def settings(self) -> Settings:
        """What the user asked for."""
        return self._settings

    @property
    def decider(self) -> Decider:
        """What answers; made when first asked for."""
        with self._lock:
            if self._decider is None:
                from torch_diode.integration.deciding.decider import Decider

                self._decider = Decider(self._settings, self.fallback, self.record)
            return self._decider

    def change(self, settings: Settings) -> None:
        """Other settings from now on, on every thread."""
        with self._lock:
            self._settings = settings
            if self._decider is not None:
                self._decider.change(settings)

    @contextlib.contextmanager
    def changed(self, settings: Settings) -> Iterator[None]:
        """Other settings for a while."""
        before = self._settings
        self.change(settings)
        try:
            yield
        finally:
            self.change(before)

    def loaded(self) -> dict[str, str]:
        """By hardware: the heuristic in use there, or why there is none; empty before the first
        decision."""
        if self._settings.heuristic is not None:
            return {"any hardware": self._settings.heuristic.name}
        return {} if self._decider is None else self._decider.loaded()

    def has_heuristic(self) -> bool:
        """Whether any hardware asked about so far has a heuristic."""
        if self._settings.heuristic is not None:
            return True
        return self._decider is not None and self._decider.has_heuristic()

    def notes(self) -> tuple[str, ...]:
        """What decisions were made in spite of."""
        return () if self._decider is None else tuple(self._decider.notes)

    def probe(self) -> str:
        """Everything the hook is answered with has to be there, not only the hook."""
        return torch_compat.why_unusable() or super().probe()

    def mixin(self, handler: Any) -> type | None:
        """The handler's hook, bound to our decider; a handler of ours put in by hand stays."""
        from torch_diode.integration.hooks.choices import DiodeInductorChoices, bound_to

        if isinstance(handler, DiodeInductorChoices):
            return None
        if self._undo_preprocessing is None:
            self._undo_preprocessing = torch_compat.add_preprocessing(self._look_at)
        return bound_to(self.decider)

    def _look_at(self, choices: list[Any]) -> list[Any]:
        """All that Inductor collected for a matmul, or the one that is to stand alone."""
        from torch_diode.integration.deciding.choice_builder import keep_single_choice

        return self.decider.fallback.run(lambda: keep_single_choice(choices)) or choices

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """The heuristic's, with the settings its answers are used under."""
        return self.decider.fingerprint(devices)

    def uninstall(self, sockets: Sockets) -> None:
        """As the base does, and without our look at the lists of choices and their timing."""
        super().uninstall(sockets)
        if self._decider is not None:
            self._decider.release()
        if self._undo_preprocessing is not None:
            self._undo_preprocessing()
            self._undo_preprocessing = None
