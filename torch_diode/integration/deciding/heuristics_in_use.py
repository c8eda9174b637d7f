"""The heuristics in use by hardware: those of the settings, or the default ones, loaded once."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch_diode
from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.integration import default_heuristic
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Abstained, DiodeWarning, Fallback
from torch_diode.integration.ranks import Ranks
from torch_diode.integration.settings import Settings
from torch_diode.integration.tuned_tables import why_unused
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware


class HeuristicsInUse:
    """Finds the heuristic for a hardware, and knows what was found and what of it is to be said."""

    def __init__(self, settings: Settings, fallback: Fallback, notes: dict[str, None]) -> None:
        self.settings = settings
        self._fallback = fallback
        self._notes = notes
        self._ranks = Ranks()
        self._loaded: dict[Hardware, Heuristic | DiodeError | None] = {}
        self._lock = threading.Lock()

    def change(self, settings: Settings) -> None:
        """Use other settings from now on; default heuristics are loaded again."""
        with self._lock:
            self.settings = settings
            self._loaded = {}

    def of(self, hardware: Hardware) -> Heuristic | None:
        """The user's heuristic, or the default one for this hardware, loaded once.

        An error in loading is kept, and raised again each time.
        """
        loaded = self._load_once(hardware)
        if isinstance(loaded, DiodeError):
            raise loaded
        return loaded

    def require(self, hardware: Hardware) -> Heuristic:
        """The same; abstains where there is none, with the reason."""
        heuristic = self.of(hardware)
        if heuristic is None:
            reason = default_heuristic.why_no_heuristic(self.settings, hardware)
            raise Abstained(f"{hardware.label}: {reason}")
        return heuristic

    def _load_once(self, hardware: Hardware) -> Heuristic | DiodeError | None:
        named = self.settings.heuristic
        with self._lock:
            if hardware not in self._loaded:
                self._loaded[hardware] = (
                    self._load(hardware)
                    if named is None
                    else default_heuristic.check_versions(named, hardware, self.settings)
                )
            return self._loaded[hardware]

    def _load(self, hardware: Hardware) -> Heuristic | DiodeError | None:
        # On a thread of its own: on a compiling thread torch would load a file's tensors as fake
        # ones, and the user may have set another default device.
        with ThreadPoolExecutor(1, "torch-diode-load") as thread:
            loading = thread.submit(default_heuristic.default_heuristic, hardware, self.settings)
        try:
            if default_heuristic.uses_tuned(self.settings) and (why := why_unused(hardware)):
                self._notes[why] = None
            return loading.result()
        except DiodeError as fault:
            return fault

    def loaded(self) -> dict[str, str]:
        """By hardware, the default heuristic in use or why there is none."""
        return {
            hardware.label: _with_trust(value, hardware)
            if isinstance(value, Heuristic)
            else str(value or default_heuristic.why_no_heuristic(self.settings, hardware))
            for hardware, value in list(self._loaded.items())
        }

    def found_any(self) -> bool:
        """True if a heuristic was found for any hardware so far."""
        return any(isinstance(value, Heuristic) for value in self._loaded.values())

    def faults(self) -> list[str]:
        """Hardware and error of each default heuristic that could not be loaded."""
        loaded = list(self._loaded.items())
        return [f"{h.label}: {value}" for h, value in loaded if isinstance(value, DiodeError)]

    def all_notes(self) -> tuple[str, ...]:
        """Caveats of the decisions so far, and the notes of the heuristics."""
        used = [h for h in list(self._loaded.values()) if isinstance(h, Heuristic)]
        own = [note for h in dict.fromkeys(used) for note in self._fallback.run(h.notes) or ()]
        return (*self._notes, *dict.fromkeys(own))

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """Text for torch's cache keys: heuristic, version and settings.

        Empty without a heuristic: the compile is then plain torch's, and may share its caches.
        """
        settings = self.settings
        if settings.mode == "observe" or torch_compat.compiles_in_subprocess():
            return ""
        if settings.heuristic is not None:
            parts = [settings.heuristic.fingerprint()]
        else:
            parts = self._default_fingerprints(devices)
        switches = map(
            str, (settings.mode, settings.strict, settings.top, settings.tma, settings.epilogues)
        )
        # Another version may decide otherwise with the same model.
        text = digest(torch_diode.__version__, *switches, *parts) if parts else ""
        self._compare_ranks(text)
        return text

    def _compare_ranks(self, fingerprint: str) -> None:
        """Warn and note where another rank of a distributed program decides with something else."""
        used = [h for h in list(self._loaded.values()) if isinstance(h, Heuristic)]
        if self.settings.heuristic is not None:
            used = [self.settings.heuristic]
        if not all(heuristic.portable for heuristic in used):
            return
        names = sorted({heuristic.name for heuristic in used}) or ["torch's own choices"]
        difference = self._ranks.compare(fingerprint, "; ".join(names))
        if difference:
            self._notes[difference] = None
            with contextlib.suppress(DiodeWarning):
                warnings.warn(f"torch-diode: {difference}", DiodeWarning, stacklevel=2)

    def _default_fingerprints(self, devices: Iterable[Any]) -> list[str]:
        parts = []
        for hardware in dict.fromkeys(device_hardware.hardware_of(device) for device in devices):
            heuristic = self._load_once(hardware)
            # One that could not be loaded decides nothing: the compile is plain torch's.
            if isinstance(heuristic, Heuristic):
                parts += [hardware.name, str(hardware.threads), heuristic.fingerprint()]
        return parts


def _with_trust(heuristic: Heuristic, hardware: Hardware) -> str:
    """A heuristic's name, and whether it decides alone there."""
    reason = heuristic.why_shortlists(hardware)
    return f"{heuristic.name}, " + (f"shortlists: {reason}" if reason else "decides alone")
