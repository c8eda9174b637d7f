"""`torch-diode status`: the hardware and releases of this machine, and what registration did."""

from __future__ import annotations

from typing import Annotated

import typer

from torch_diode.cli.console.output import print_json, print_line, print_table


def status(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the distribution, the releases, the hardware and what registration did.

    Example: torch-diode status --json
    """
    from torch_diode.toolkit.status import machine_status

    machine = machine_status(context.obj.device)
    if as_json:
        print_json(machine.to_dict())
        return
    rows = [(name, value) for name, value in machine.facts.items() if not isinstance(value, dict)]
    rows += [(f"hardware {name}", value) for name, value in machine.facts["hardware"].items()]
    print_table(("what", "found"), rows)
    print_line("")
    print_line(str(machine.registration))
