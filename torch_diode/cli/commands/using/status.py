"""`torch-diode status`: what torch-diode found on this machine, and what registration did."""

from __future__ import annotations

import dataclasses
import platform
from importlib import metadata
from typing import Annotated, Any

import typer

from torch_diode import __version__, _distribution
from torch_diode.cli.console.output import print_json, print_line, print_table
from torch_diode.hardware import detect, known_names
from torch_diode.integration import registration
from torch_diode.integration.status import Status


def status(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the distribution, the releases, the hardware and what registration did.

    Example: torch-diode status --json
    """
    facts = machine_facts(context.obj.device)
    found = registration.probe()
    if as_json:
        print_json({**facts, "registration": _as_data(found)})
        return
    rows = [(name, value) for name, value in facts.items() if not isinstance(value, dict)]
    rows += [(f"hardware {name}", value) for name, value in facts["hardware"].items()]
    print_table(("what", "found"), rows)
    print_line("")
    print_line(str(found))


def machine_facts(device: str | None) -> dict[str, Any]:
    """What this machine has, as far as torch-diode is concerned."""
    chip = detect(device)
    return {
        "distribution": _distributions(),
        "python": platform.python_version(),
        "torch": _release("torch"),
        "triton": _release("triton"),
        "properties published": "yes" if chip.name in known_names() else "no, read off the device",
        "hardware": chip.to_dict(),
    }


def _distributions() -> str:
    """The one in use, and the other where both are installed."""
    others = {"torch-diode", "torch-diode-lib"} - {_distribution.NAME}
    beside = [name for name in others if _release(name) != "not installed"]
    note = f" ({beside[0]} is installed too, and not used)" if beside else ""
    return f"{_distribution.NAME} {__version__}{note}"


def _release(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _as_data(found: Status) -> dict[str, Any]:
    counters = found.counters
    return {
        "enabled": found.enabled,
        "mode": found.mode,
        "steps": [dataclasses.asdict(step) for step in found.steps],
        "heuristics": found.heuristics,
        "decisions": counters.decisions,
        "abstentions": dict(counters.abstentions),
        "fallbacks": dict(counters.fallbacks),
        "notes": list(found.notes),
    }
