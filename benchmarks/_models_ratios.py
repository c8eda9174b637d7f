"""Summary of the model benchmark's rows."""

from __future__ import annotations

import math
from typing import Any

from _live import Row, as_table, geomean
from _models import MODELS

IN_TURN = "in turn"


def summary(rows: list[Row]) -> dict[str, Any]:
    """Ratios per model, and their geometric means."""
    models: dict[str, Row] = {}
    for name in MODELS:
        own = [row for row in rows if row["model"] == name and "gpu_ms" in row]
        cold = {(row["mode"], row["diode"]): row for row in own if IN_TURN not in row}
        turns = {(row["mode"], row["diode"]): row for row in own if IN_TURN in row}
        if ("reduce-overhead", True) in turns:
            models[name] = _ratios(cold, turns)
    columns = next(iter(models.values()), {})
    means = {
        column: geomean([m[column] for m in models.values() if m[column] is not None])
        for column in columns
        if column != "noise"
    }
    return {"models": models, "geomean": means}


def _ratios(cold: dict[Any, Row], turns: dict[Any, Row]) -> Row:
    """Ratios of one model; the better plain mode needs both plain modes."""
    pair = [cold.get(("reduce-overhead", diode)) for diode in (True, False)]
    both = [turns["reduce-overhead", diode] for diode in (True, False)]
    tuned = turns.get(("max-autotune", False))
    over: dict[str, list[float]] = both[0]["over"]
    few = turns["max-autotune", True]["over"] if tuned else {}
    apart = [_over(one, other, "gpu_ms") for one, other in zip(pair, both, strict=True)]
    # Plain torch before and after torch-diode, both from an empty cache.
    plain_s = geomean([row["compile_s"] for row in (pair[1], both[1]) if row])
    return {
        "gpu over the better": max(each[0] for each in over.values()) if tuned else None,
        "gpu over reduce-overhead": over["reduce-overhead"][0],
        "noise": max([over["reduce-overhead"][1], *(abs(math.log(x)) for x in apart if x)]),
        "gpu over max-autotune": over["max-autotune"][0] if tuned else None,
        "compile over reduce-overhead": _over(pair[0], {"compile_s": plain_s}, "compile_s"),
        "max-autotune compile over": _over(tuned, pair[0], "compile_s"),
        "memory over reduce-overhead": _over(*pair, "peak_mb"),
        "default: gpu over plain": _over(
            *(cold.get(("default", d)) for d in (True, False)), "gpu_ms"
        ),
        "max-autotune: gpu over the better": max(each[0] for each in few.values()) if few else None,
        "max-autotune: gpu over plain": few["max-autotune"][0] if few else None,
    }


def _over(one: Row | None, other: Row | None, column: str) -> float | None:
    both = one and other and column in one and column in other
    return one[column] / other[column] if both else None


def show(rows: list[Row]) -> None:
    """Print all cases, then the ratios."""
    columns = ("gpu_ms", "spread_ms", "compile_s", "peak_mb", "difference")
    table: list[list[Any]] = [["model", "mode", "torch-diode", *columns]]
    for row in rows:
        cells = [row.get(column) for column in columns]
        mode = f"{row['mode']}, {IN_TURN}" if IN_TURN in row else row["mode"]
        table.append([row["model"], mode, "yes" if row["diode"] else "no", *cells])
    print(as_table(table))
    found = summary(rows)
    if found["models"]:
        names = list(next(iter(found["models"].values())))
        lines = [[name, *(ratios[n] for n in names)] for name, ratios in found["models"].items()]
        means: list[Any] = ["geomean", *(found["geomean"].get(n) for n in names)]
        print()
        print(as_table([["torch-diode, reduce-overhead", *names], *lines, means]))
