"""The matmul integration: which kernel runs a matrix multiplication."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from torch_diode.integration.base import ON, ChoicesIntegration
from torch_diode.integration.deciding.record import Record
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.weight_packing import WeightPacking
from torch_diode.integration.settings import Settings

if TYPE_CHECKING:
    from torch_diode.integration.deciding.decider import Decider
    from torch_diode.integration.installation import Registration


class MatmulIntegration(ChoicesIntegration):
    """mm, addmm, bmm and baddbmm, by the heuristic of the settings or the default one; in frozen
    graphs also the library that a linear's constant weight is packed for.

    The decider, and numpy with it, is imported at the first request: registering is light.
    """

    name = "matmul"
    falls_back = True

    def __init__(self, settings: Settings | None = None, fallback: Fallback | None = None) -> None:
        super().__init__()
        self.fallback = fallback if fallback is not None else Fallback()
        self.record = Record()
        self.settings = settings if settings is not None else Settings()
        self._decider: Decider | None = None
        self._lock = threading.Lock()
        self._undo_preprocessing: Callable[[], None] | None = None
        self._weight_packing = WeightPacking(self.fallback, self._decide_frozen)

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """This release's method for matmul choices."""
        return (torch_compat.matmul_hook(),)

    @property
    def decider(self) -> Decider:
        """The decider behind the hooks, created at first use."""
        with self._lock:
            if self._decider is None:
                from torch_diode.integration.deciding.decider import Decider

                self._decider = Decider(self.settings, self.fallback, self.record)
            return self._decider

    def change(self, settings: Settings) -> None:
        """Use other settings from now on, on every thread."""
        with self._lock:
            self.settings = settings
            if self._decider is not None:
                self._decider.change(settings)

    @contextlib.contextmanager
    def changed(self, settings: Settings) -> Iterator[None]:
        """Use other settings inside the `with`."""
        before = self.settings
        self.change(settings)
        try:
            yield
        finally:
            self.change(before)

    def loaded(self) -> dict[str, str]:
        """By hardware, the heuristic in use or why there is none; empty before the first
        decision."""
        if self.settings.heuristic is not None:
            return {"any hardware": self.settings.heuristic.name}
        return {} if self._decider is None else self._decider.heuristics.loaded()

    def has_heuristic(self) -> bool:
        """True if a heuristic was found for any hardware so far."""
        if self.settings.heuristic is not None:
            return True
        return self._decider is not None and self._decider.heuristics.found_any()

    def load_faults(self) -> list[str]:
        """Hardware and error of each heuristic that could not be loaded."""
        return [] if self._decider is None else self._decider.heuristics.faults()

    def notes(self) -> tuple[str, ...]:
        """Caveats of the decisions so far, such as a model of another torch release."""
        return () if self._decider is None else self._decider.heuristics.all_notes()

    def probe(self) -> str:
        """Check everything the hook's implementation needs, not only the hook."""
        return torch_compat.why_unusable() or super().probe()

    def mixin(self, handler: Any) -> type | None:
        """The handler class with our decider; None for a `DiodeInductorChoices` set by hand."""
        from torch_diode.integration.hooks.choices import DiodeInductorChoices, bound_to

        if isinstance(handler, DiodeInductorChoices):
            return None
        if self._undo_preprocessing is None:
            self._undo_preprocessing = torch_compat.add_preprocessing(self._preprocess)
        return bound_to(self.decider)

    def _preprocess(self, choices: list[Any]) -> list[Any]:
        from torch_diode.integration.deciding.choice_builder import keep_single_choice

        kept = self.decider.fallback.run(lambda: keep_single_choice(choices)) or choices
        if len(kept) > 1 and kept[0].layout.device.type == "cpu":
            from torch_diode.integration.cpu.frozen import keep_decided

            return self.decider.fallback.run(lambda: keep_decided(kept)) or kept
        return kept

    def _decide_frozen(self, node: Any) -> bool:
        return bool(self.fallback.run(lambda: self._apply_frozen(node)))

    def _apply_frozen(self, node: Any) -> bool:
        from torch._inductor.virtualized import V

        from torch_diode.integration.cpu.frozen import FrozenLinear

        V.choices  # noqa: B018  probes the hooks, before the lowering does
        if self.state != ON:
            return False
        linear = FrozenLinear(node)
        candidate = self.decider.decide_frozen(linear)
        if candidate is not None:
            linear.apply(candidate)
        return candidate is not None

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """The heuristic's fingerprint, with the settings it is used under."""
        return self.decider.heuristics.fingerprint(devices)

    def why_not_cached(self, gm: Any) -> str:
        """A reason where a frozen graph's code contains weights that torch's key does not cover."""
        from torch_diode.integration.cpu.frozen import embeds_packed_weights

        return "a C++ template packs frozen weights" if embeds_packed_weights(gm) else ""

    def install(self, registration: Registration) -> None:
        """Also hook into freezing."""
        super().install(registration)
        self._weight_packing.install()

    def uninstall(self, registration: Registration) -> None:
        """Also remove the hook into freezing, the preprocessing of choices and the clean
        benchmark."""
        super().uninstall(registration)
        self._weight_packing.uninstall()
        if self._decider is not None:
            self._decider.release()
        if self._undo_preprocessing is not None:
            self._undo_preprocessing()
            self._undo_preprocessing = None
