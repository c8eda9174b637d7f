"""`torch-diode status`: the hardware and releases of this machine, and what registration did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from torch_diode.cli.console.output import print_json, print_line, print_table
from torch_diode.cli.options.parameters import AS_JSON

if TYPE_CHECKING:
    from torch_diode.toolkit.status import MachineStatus


def status(context: typer.Context, as_json: bool = AS_JSON) -> None:
    """Show this machine, its releases, and whether torch-diode decides.

    Exit code 1 where a step of it failed, such as for a wrong switch or a missing model.

    Example: torch-diode status --json
    """
    from torch_diode.toolkit.status import machine_status

    machine = machine_status(context.obj.device)
    if as_json:
        print_json(machine.to_dict())
    else:
        _print(machine)
    if machine.registration.failed:
        raise typer.Exit(1)


def _print(machine: MachineStatus) -> None:
    rows = [(name, value) for name, value in machine.facts.items() if not isinstance(value, dict)]
    rows += [(f"hardware {name}", value) for name, value in machine.facts["hardware"].items()]
    print_table(("what", "found"), rows)
    print_line("")
    print_line(str(machine.registration))
