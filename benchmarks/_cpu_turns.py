"""Variants of one model, compiled one after another and then called in turn.

Times of a CPU are compared only within one run: all variants stay loaded, each gets a short turn,
and so on around, so that whatever else happens on the machine meets all of them. A low quantile of
all calls counts, since disturbances only add.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _cpu_process import Row, VariantProcess
from _live import quantile

LOW = 0.2
"""Quantile of the calls that counts as the time."""
TURN_S, MOST_CALLS = 0.15, 50
"""Length of a turn."""
LEAST_ROUNDS, MOST_ROUNDS = 4, 60


def measured(
    arguments: Mapping[str, Sequence[str]],
    threads: int,
    pythons: Mapping[str, Path],
    seconds: float,
    base: str,
) -> dict[str, Row]:
    """A row per variant; `arguments` and `pythons` are those of its process."""
    with contextlib.ExitStack() as stack:
        # They start together, since that is mostly imports, and compile one by one.
        running = {
            name: stack.enter_context(VariantProcess(given, threads, *_python(pythons, name)))
            for name, given in arguments.items()
        }
        for process in running.values():
            process.answer()
        rows = {name: process.ask({"compile": True}) or {} for name, process in running.items()}
        stolen = steal_s()
        begun = time.monotonic()
        rounds = in_turn(running, seconds)
        stolen = (steal_s() - stolen) / max(time.monotonic() - begun, 1e-9)
    for name, process in running.items():
        if process.fault:
            rows[name] = {"fault": process.fault}
            continue
        rows[name] |= _times(rounds[name]) | {"stolen": round(stolen, 4)}
        if base in rounds and not running[base].fault:
            rows[name]["over"] = over(rounds[name], rounds[base])
    return rows


def _python(pythons: Mapping[str, Path], name: str) -> list[Path]:
    return [pythons[name]] if name in pythons else []


def in_turn(running: Mapping[str, VariantProcess], seconds: float) -> dict[str, list[list[float]]]:
    """Milliseconds of the calls of each variant and round, within about that many seconds."""
    calls = dict.fromkeys(running, 1)
    rounds: dict[str, list[list[float]]] = {name: [] for name in running}
    end = time.monotonic() + seconds
    for turn in range(MOST_ROUNDS):
        if turn >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for name in list(running)[:: 1 if turn % 2 == 0 else -1]:
            answer = running[name].ask({"calls": calls[name]})
            if answer is not None:
                rounds[name].append(answer["ms"])
                wanted = TURN_S * 1e3 / max(min(answer["ms"]), 1e-6)
                calls[name] = max(1, min(int(wanted), MOST_CALLS))
    return rounds


def over(own: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> list[float]:
    """Ratio of the times, and its noise: half the distance between even and odd rounds."""

    def ratio(start: int, step: int) -> float:
        one, other = own[start::step], base[start::step]
        return _low(one) / _low(other)

    apart = abs(math.log(ratio(0, 2) / ratio(1, 2))) / 2 if min(len(own), len(base)) > 1 else 0.0
    return [round(ratio(0, 1), 5), round(apart, 5)]


def _low(rounds: Sequence[Sequence[float]]) -> float:
    return quantile([ms for calls in rounds for ms in calls], LOW)


def _times(rounds: Sequence[Sequence[float]]) -> dict[str, Any]:
    every = [ms for calls in rounds for ms in calls]
    return {
        "ms": round(_low(rounds), 5),
        "median_ms": round(quantile(every, 0.5), 5),
        "rounds": len(rounds),
        "calls": len(every),
    }


def steal_s() -> float:
    """Seconds the host has taken from this machine's cores since it started; 0 if unknown."""
    stat = Path("/proc/stat")
    return float(stat.read_text().split()[8]) / 100 if stat.exists() else 0.0
