"""Status of this machine: the releases installed, the hardware, and what registration did."""

from __future__ import annotations

import dataclasses
import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from torch_diode import __version__, _distribution
from torch_diode.hardware import detect, known_names
from torch_diode.integration import registration
from torch_diode.integration.status import Status


@dataclass(frozen=True)
class MachineStatus:
    """Facts about this machine by name, and the status of registration."""

    facts: dict[str, Any]
    registration: Status

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        counters = self.registration.counters
        return {
            **self.facts,
            "registration": {
                "enabled": self.registration.enabled,
                "mode": self.registration.mode,
                "steps": [dataclasses.asdict(step) for step in self.registration.steps],
                "heuristics": self.registration.heuristics,
                "integrations": self.registration.integrations,
                "configs": list(self.registration.configs),
                "decisions": counters.decisions,
                "abstentions": dict(counters.abstentions),
                "fallbacks": dict(counters.fallbacks),
                "notes": list(self.registration.notes),
            },
        }


def machine_status(device: str | None = None) -> MachineStatus:
    """Detect the hardware, probe registration and load the heuristic for it."""
    chip = detect(device)
    facts = {
        "distribution": _distributions(),
        "python": platform.python_version(),
        "torch": _release("torch"),
        "triton": _release("triton"),
        "properties published": "yes" if chip.name in known_names() else "no, read off the device",
        "hardware": chip.to_dict(),
    }
    registration.probe()
    return MachineStatus(facts, registration.load_heuristic(chip))


def _distributions() -> str:
    """The distribution in use, and the other where both are installed."""
    others = {"torch-diode", "torch-diode-lib"} - {_distribution.NAME}
    beside = [name for name in others if _release(name) != "not installed"]
    note = f" ({beside[0]} is installed too, and not used)" if beside else ""
    return f"{_distribution.NAME} {__version__}{note}"


def _release(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
