"""`torch-diode status`: what torch-diode found on this machine and did there."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Annotated, Any

import typer

from torch_diode import __version__, _distribution
from torch_diode.cli.output import print_json, print_table
from torch_diode.hardware import detect, known_names


def status(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the distribution, the releases, the hardware and what registration did.

    Example: torch-diode status --json
    """
    facts = machine_facts(context.obj.device)
    if as_json:
        print_json(facts)
        return
    rows = [(name, value) for name, value in facts.items() if not isinstance(value, dict)]
    rows += [(f"hardware {name}", value) for name, value in facts["hardware"].items()]
    print_table(("what", "found"), rows)


def machine_facts(device: str | None) -> dict[str, Any]:
    """What this machine has, as far as torch-diode is concerned."""
    chip = detect(device)
    return {
        "distribution": f"{_distribution.NAME} {__version__}",
        "python": platform.python_version(),
        "torch": _release("torch"),
        "triton": _release("triton"),
        "properties published": "yes" if chip.name in known_names() else "no, read off the device",
        "hardware": chip.to_dict(),
    }


def _release(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
