"""`torch-diode explain`: run a program, then show every decision made while it compiled."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import typer

from torch_diode.cli.console.output import note, print_json, print_line
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import AS_JSON, PROGRAM, option
from torch_diode.hardware import known_names
from torch_diode.integration.deciding.record import Answered, Decision, Decisions
from torch_diode.types.timing import Prediction


def explain(
    context: typer.Context,
    script: Path = PROGRAM,
    hardware: str | None = option("As on this chip, which need not be here.", values=known_names()),
    threads: int = filters.THREADS,
    as_json: bool = AS_JSON,
) -> None:
    """Run a program and show why each kernel was chosen.

    What follows the program's name are its own arguments. With --json, what it prints goes to
    standard error. With --hardware the program runs on what this machine has, and the decisions
    are those of that chip.

    Example: torch-diode explain --hardware nvidia-h200 train.py --steps 1
    """
    from torch_diode.toolkit.explain import explain_program
    from torch_diode.toolkit.program import stdout_to_stderr

    with stdout_to_stderr() if as_json else contextlib.nullcontext():
        result = explain_program(script, context.args, hardware=hardware, threads=threads)
    for text in result.notes:
        note(text)
    if as_json:
        decisions = [_as_json(decision) for decision in result.decisions]
        print_json([*decisions, *map(_answered_as_json, result.decisions.answers)])
    else:
        shown = Decisions(result.decisions, result.decisions.answers)
        print_line(str(shown))  # the status has the notes
        print_line(str(result.status))
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _as_json(decision: Decision) -> dict[str, Any]:
    data = dataclasses.asdict(decision)
    data["problem"] = decision.problem.to_dict()
    winner, *runners_up = map(_prediction_as_json, (decision.winner, *decision.runners_up))
    plain = _prediction_as_json(decision.plain) if decision.plain else None
    return {**data, "winner": winner, "runners_up": runners_up, "plain": plain}


def _prediction_as_json(prediction: Prediction) -> dict[str, Any]:
    return {**prediction.candidate.to_dict(), "predicted_us": prediction.predicted_us}


def _answered_as_json(answered: Answered) -> dict[str, Any]:
    data = dataclasses.asdict(answered)
    question = answered.question
    data["question"] |= {
        "decision": question.decision,
        "asks": question.asks,
        "hardware": question.hardware.name,
    }
    return data
