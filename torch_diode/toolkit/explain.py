"""Explaining: run a program and return the decisions made while it compiled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch_diode.hardware import find
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import default_heuristic, registration, settings
from torch_diode.integration.deciding.record import Decisions
from torch_diode.integration.status import Status
from torch_diode.toolkit.program import check_program, run_program
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware


@dataclass(frozen=True)
class Explanation:
    """The decisions made in a program, and the status of torch-diode after it."""

    decisions: Decisions
    status: Status
    exit_code: int
    """The program's."""
    note: str = ""
    """The reason why the analytical heuristic decided for a hardware without a model."""


def explain_program(
    program: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    hardware: str | None = None,
    threads: int = 0,
) -> Explanation:
    """Run a program in this process and return every decision made while it compiled.

    With `hardware` the program runs on this machine, and the decisions are those for that chip,
    which need not be here; `threads` are those of a CPU, by default as many as torch uses here.
    """
    script = Path(program)
    check_program(script, arguments)
    if hardware is not None:
        chip = find(hardware, threads)
        explain = _explain_on_cpu if chip.kind == "cpu" else _explain_on
        return explain(chip, script, arguments)
    if threads:
        raise InvalidValueError(
            f"explain: got threads of {threads} without a hardware; expected the name of a CPU "
            "too; the threads torch uses here are set by OMP_NUM_THREADS"
        )
    if not registration.status().enabled:
        registration.enable()
    code = run_program(script, arguments)
    return Explanation(registration.explain(), registration.status(), code)


def _explain_on(chip: Hardware, script: Path, arguments: Sequence[str]) -> Explanation:
    """Run here, then lower every compiled graph once more as on the other chip."""
    from torch_diode.integration.capture.fake_gpu import check_can_lower
    from torch_diode.integration.capture.graph_capture import capturing, lower_on

    check_can_lower(chip)
    heuristic, note = _heuristic_for(chip)
    with capturing() as graphs:
        code = run_program(script, arguments)
    with registration.using(heuristic):
        for graph in graphs:
            lower_on(graph, chip)
        status = registration.status()
    return Explanation(registration.explain(), status, code, note)


def _explain_on_cpu(chip: Hardware, script: Path, arguments: Sequence[str]) -> Explanation:
    """Run here with torch's own choices, and record those for the other CPU."""
    from torch_diode.integration.capture.graph_capture import compiling_as_on

    heuristic, note = _heuristic_for(chip)
    with registration.using(heuristic, "observe"), compiling_as_on(chip):
        code = run_program(script, arguments)
        return Explanation(registration.explain(), registration.status(), code, note)


def _heuristic_for(chip: Hardware) -> tuple[Heuristic, str]:
    chosen = settings.from_environment()
    heuristic = default_heuristic.default_heuristic(chip, chosen)
    if heuristic is not None:
        return heuristic, ""
    off = "the model is turned off, torch would decide"
    why = off if chosen.model == default_heuristic.NONE else default_heuristic.NO_MODEL
    return AnalyticalHeuristic(), f"{chip.label}: {why}; the analytical heuristic answers instead"
