"""`torch-diode explain`: run a program, then show every decision made while it compiled."""

from __future__ import annotations

import dataclasses
import runpy
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from torch_diode.cli.output import print_json, say
from torch_diode.files.faults import existing
from torch_diode.integration import registration
from torch_diode.integration.record import Decision


def explain(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(help="Python program to run.")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Run a program and list what torch-diode decided in it; further arguments are the program's.

    Example: torch-diode explain train.py --steps 1
    """
    existing(script)
    if not registration.status().enabled:
        registration.enable()
    arguments, sys.argv = sys.argv, [str(script), *context.args]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise
    finally:
        sys.argv = arguments
    decisions = registration.explain()
    if as_json:
        print_json([_as_data(decision) for decision in decisions])
    else:
        say(str(decisions))
        say(str(registration.status()))


def _as_data(decision: Decision) -> dict[str, Any]:
    data = dataclasses.asdict(decision)
    data["problem"] = decision.problem.to_dict()
    data["winner"] = {
        **decision.winner.candidate.to_dict(),
        "predicted_us": decision.winner.predicted_us,
    }
    data["runners_up"] = [
        {**other.candidate.to_dict(), "predicted_us": other.predicted_us}
        for other in decision.runners_up
    ]
    return data
