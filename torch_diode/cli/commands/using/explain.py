"""`torch-diode explain`: run a program, then show every decision made while it compiled."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from torch_diode.cli.console.output import note, print_json, print_line
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import default_heuristic, registration, settings
from torch_diode.integration.deciding.record import Decision
from torch_diode.integration.status import Status
from torch_diode.toolkit.program import check_program, printing_aside, run_program
from torch_diode.types.hardware import Hardware


def explain(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(help="Python program to run.")],
    hardware: Annotated[
        str | None, typer.Option(help="As on this chip, which need not be here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Run a program and list what torch-diode decided in it.

    What follows the program's name are its own arguments. With --json, what it prints goes to
    standard error. With --hardware the program runs on what this machine has, and the decisions
    are those of that chip.

    Example: torch-diode explain --hardware nvidia-h200 train.py --steps 1
    """
    check_program(script)
    chip = None if hardware is None else known(hardware)
    with printing_aside() if as_json else contextlib.nullcontext():
        if chip is not None:
            code, status = _run_as_on(chip, script, context.args)
        else:
            code, status = _run_here(script, context.args)
    decisions = registration.explain()
    if as_json:
        print_json([_as_data(decision) for decision in decisions])
    else:
        print_line(str(decisions))
        print_line(str(status))
    if code:
        raise typer.Exit(code)


def _run_here(script: Path, arguments: Sequence[str]) -> tuple[int, Status]:
    """The program's exit code, and how things stood after it."""
    if not registration.status().enabled:
        registration.enable()
    return run_program(script, arguments), registration.status()


def _run_as_on(chip: Hardware, script: Path, arguments: Sequence[str]) -> tuple[int, Status]:
    """Run here, then lower what was compiled once more, as on the other chip; the program's exit
    code, and how things stood there."""
    from torch_diode.integration.capture.fake_gpu import check_kind
    from torch_diode.integration.capture.graph_capture import capturing, lower_on

    check_kind(chip)
    heuristic = _heuristic_for(chip)
    with capturing() as graphs:
        code = run_program(script, arguments)
    with registration.using(heuristic):
        for graph in graphs:
            lower_on(graph, chip)
        return code, registration.status()


def _heuristic_for(chip: Hardware) -> Heuristic:
    chosen = settings.from_environment()
    found = default_heuristic.default_heuristic(chip, chosen)
    if found is None:
        off = "the model is turned off, torch would decide"
        why = off if chosen.model == default_heuristic.NONE else default_heuristic.NO_MODEL
        note(f"{chip.name}: {why}; the analytical heuristic answers instead")
    return found or AnalyticalHeuristic()


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
