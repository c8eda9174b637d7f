"""Explaining: run a program and return the decisions made while it compiled."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch_diode.hardware import find
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import default_heuristic, registration
from torch_diode.integration.deciding.record import Decisions
from torch_diode.integration.hooks.fallback import fault_of
from torch_diode.integration.settings import Settings
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
    notes: tuple[str, ...] = ()
    """Why the analytical heuristic decided for a hardware without a model; each graph that could
    not be lowered for it."""


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
        earlier = registration.explain()
        result = explain(chip, script, arguments)
        known = set(map(id, earlier))
        made = (d for d in result.decisions if d.hardware == chip.name and id(d) not in known)
        return replace(result, decisions=Decisions(made))
    if threads:
        raise InvalidValueError(
            f"explain: got threads of {threads} without a hardware; expected the name of a CPU "
            "too; the threads torch uses here are set by OMP_NUM_THREADS"
        )
    from torch_diode.integration.capture.graph_capture import without_caches

    with registration.enabled_unless_off(), without_caches():
        code = run_program(script, arguments)
        return Explanation(registration.explain(), registration.status(), code)


def _explain_on(chip: Hardware, script: Path, arguments: Sequence[str]) -> Explanation:
    """Run here, then lower every compiled graph once more as on the other chip."""
    from torch_diode.integration.capture.fake_gpu import check_can_lower
    from torch_diode.integration.capture.graph_capture import capturing, lower_on

    check_can_lower(chip)
    with registration.enabled_unless_off():
        with capturing() as graphs:
            code = run_program(script, arguments)
        status, notes = registration.status(), list(graphs.faults)
        for number, graph in enumerate(graphs, 1):
            name = f"graph {number} of {len(graphs)}"
            if graph.settings is None:
                notes.append(f"{name}: torch-diode is off in the program; torch decides")
                continue
            heuristic, note = _heuristic_for(chip, graph.settings)
            notes.append(note)
            with registration.scope(graph.settings.changed(heuristic=heuristic)):
                fault = fault_of(partial(lower_on, graph, chip))
                if fault:
                    notes.append(f"{name} cannot be lowered for {chip.name}: {fault}")
                status = registration.status()
    distinct = tuple(dict.fromkeys(filter(None, notes)))
    return Explanation(registration.explain(), status, code, distinct)


def _explain_on_cpu(chip: Hardware, script: Path, arguments: Sequence[str]) -> Explanation:
    """Run here with torch's own choices, and record those for the other CPU."""
    from torch_diode.integration.capture.graph_capture import compiling_as_on

    with registration.enabled_unless_off():
        chosen, note = registration.current_settings(), ""
        with contextlib.ExitStack() as stack:
            if chosen is not None:
                heuristic, note = _heuristic_for(chip, chosen)
                chosen = chosen.changed(heuristic=heuristic, mode="observe")
                stack.enter_context(registration.scope(chosen))
            stack.enter_context(compiling_as_on(chip))
            code = run_program(script, arguments)
            if registration.current_settings() is None:
                note = "torch-diode is off in the program; torch decides"
            notes = (note,) if note else ()
            return Explanation(registration.explain(), registration.status(), code, notes)


def _heuristic_for(chip: Hardware, chosen: Settings) -> tuple[Heuristic, str]:
    if chosen.heuristic is not None:
        return chosen.heuristic, ""
    heuristic = default_heuristic.default_heuristic(chip, chosen)
    if heuristic is not None:
        return heuristic, ""
    off = "the model is turned off, torch would decide"
    why = off if chosen.model == default_heuristic.NONE else default_heuristic.NO_MODEL
    return AnalyticalHeuristic(), f"{chip.label}: {why}; the analytical heuristic answers instead"
